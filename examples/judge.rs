//! What the runners of vectors share: reading a line, saying what is wrong with a port, and counting.

use std::ffi::CStr;

pub const HEADS: [&str; 4] = ["UNINITIALIZED", "HEAD_AT_CPU", "HEAD_AT_GPU", "SYNCED"];
pub type Found = Result<(), String>;

pub fn after<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    Some(text.split_once(key)?.1)
}
pub fn number(text: &str, key: &str) -> Option<usize> {
    let rest = after(text, key)?;
    rest[..rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len())].parse().ok()
}
pub fn word<'a>(text: &'a str, key: &str) -> Option<&'a str> {
    after(text, key)?.strip_prefix('"')?.split('"').next()
}
pub fn expect<T: PartialEq + std::fmt::Display>(what: &str, wanted: T, seen: T) -> Found {
    if wanted == seen { Ok(()) } else { Err(format!("expected {what}{wanted}, seen {seen}")) }
}

/// Play the steps of a line, until something is wrong.
pub fn steps(line: &str, mut play: impl FnMut(&str, &str) -> Found) -> Found {
    let steps = line.split("{\"call\":\"").skip(1).enumerate();
    let wrong = steps.map(|(k, told)| (k, told.split('"').next().unwrap_or(""), told)).find_map(|(k, call, told)| play(call, told).err().map(|it| format!("step {k} {call}: {it}")));
    wrong.map_or(Ok(()), Err)
}

/// How many of the vectors of a file failed, or -1 if there are none.
pub fn replayed(path: &CStr, judge: impl Fn(&str) -> Found) -> i32 {
    let text = std::fs::read_to_string(path.to_str().unwrap_or("")).unwrap_or_default();
    let found: Vec<_> = text.lines().map(|line| judge(line).map_err(|it| println!("{} {it}", word(line, "\"id\":").unwrap_or("")))).collect();
    let failed = found.iter().filter(|it| it.is_err()).count();
    println!("{} vectors, {failed} failed", found.len());
    if found.is_empty() { -1 } else { failed as i32 }
}

/// End the program: 1 if some file failed, or if there was none.
pub fn exit(replay: impl Fn(&CStr) -> i32) {
    let results: Vec<_> = std::env::args().skip(1).map(|it| replay(&std::ffi::CString::new(it).unwrap())).collect();
    std::process::exit((results.is_empty() || results.iter().any(|it| *it != 0)) as i32);
}
