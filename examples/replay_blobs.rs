//! Replay test vectors of blobs on a port with the C ABI of syncedmem_port.h, and judge everything that they say.
//!
//!     syncedmem vectors --out build/vectors
//!     rustc --edition 2021 -O -L build -l port -o build/replay_blobs examples/replay_blobs.rs
//!     LD_LIBRARY_PATH=build build/replay_blobs build/vectors/caffe/blob-cells.jsonl
//!
//! It is used as replay.rs, which runs the vectors of memories.  A port that has no blobs is not judged.  A copy within
//! one side and a free are no actions of a vector; what was allocated has to be freed when the last blob is gone.

mod abi_of_blobs;
mod judge;
#[allow(dead_code)] // what only memories need
mod lent;
use abi_of_blobs::{launch, Answer, Asked, Blobs, State, CALLS, COPY_DIFF, RESHAPE, SEQUENCE, TYPES};
use judge::{after, expect, number, word, Found, HEADS};
use lent::{Allocators, Heap, Lent, Port, DEVICE};
use std::ffi::{c_char, c_void, CStr};
use std::{ptr::null_mut, slice::from_raw_parts};

/// The numbers of a list that stands after a key.
fn list(text: &str, key: &str) -> Option<Vec<f64>> {
    let inside = after(text, key)?.strip_prefix('[')?.split(']').next()?;
    Some(inside.split(',').filter_map(|it| it.parse().ok()).collect())
}

struct Judge<'a> { port: &'a Port, table: &'a Blobs, heap: Heap, lent: Lent, blobs: Vec<(*mut c_void, usize)>, mode: u32, kind: usize }
impl Judge<'_> {
    fn element(&self, at: &[u8]) -> f64 {
        let four = [at[0], at[1], at[2], at[3]];
        match self.kind { 0 => f32::from_ne_bytes(four) as f64, 1 => f64::from_ne_bytes(at.try_into().unwrap()), 2 => i32::from_ne_bytes(four) as f64, _ => u32::from_ne_bytes(four) as f64 }
    }
    fn bytes(&self, it: f64) -> Vec<u8> {
        match self.kind { 0 => (it as f32).to_ne_bytes().to_vec(), 1 => it.to_ne_bytes().to_vec(), 2 => (it as i32).to_ne_bytes().to_vec(), _ => (it as u32).to_ne_bytes().to_vec() }
    }
    fn same(&mut self, what: &str, at: *const u8, wanted: &[f64]) -> Found {
        let width = TYPES[self.kind].1;
        expect(&format!("{what} is memory: "), true, self.heap.find(at, wanted.len() * width).is_some())?;
        let seen = unsafe { from_raw_parts(at, wanted.len() * width) };
        let mut each = wanted.iter().zip(seen.chunks(width)).enumerate();
        each.try_for_each(|(k, (it, bytes))| expect(&format!("at element {k} of {what} "), *it, self.element(bytes)))
    }
    fn make(&mut self, shape: &[f64], allocators: &Allocators) -> Found {
        let (numbers, mut at): (Vec<i64>, _) = (shape.iter().map(|it| *it as i64).collect(), null_mut());
        expect("a new blob: ", 0, (self.table.create)(allocators, launch, self.kind as u32, &mut at))?;
        let asked = Asked { call: 0, mode: self.mode, options: SEQUENCE, count: numbers.len(), numbers: numbers.as_ptr(), factor: 0.0, other: null_mut(), data: null_mut(), data_size: 0, data_kind: 0 };
        self.blobs.push((at, numbers.iter().product::<i64>() as usize * TYPES[self.kind].1));
        expect("its shape: ", 0, (self.table.call)(at, &asked, &mut unsafe { std::mem::zeroed() }))
    }
    fn play(&mut self, call: &str, told: &str) -> Found {
        let asks = told.split("\"refusal\":").next().unwrap_or("");
        let (argument, n) = (after(asks, "\"argument\":").unwrap_or(""), number(asks, ",\"blob\":").unwrap_or(0));
        if call == "set_mode" { self.mode = argument.starts_with("\"GPU") as u32; }
        if call == "set_mode" { return Ok(()); }
        if call == "release" { (self.table.destroy)(std::mem::replace(&mut self.blobs[n].0, null_mut())); }
        let left = if self.blobs.iter().all(|it| it.0.is_null()) { self.heap.blocks.iter().filter(|it| it.live).count() } else { 0 };
        expect("blocks left: ", 0, left)?;
        if call != "release" { self.call(CALLS.iter().position(|it| *it == call).ok_or("no call of a blob")?, n, argument, told)?; }
        expect("nothing written beside a block: ", true, self.heap.blocks.iter().all(|it| it.guarded()))
    }
    fn call(&mut self, call: usize, n: usize, argument: &str, told: &str) -> Found {
        let numbers: Vec<i64> = list(argument, "").unwrap_or_default().iter().map(|it| *it as i64).collect();
        let options = [(argument.starts_with('['), SEQUENCE), (argument.contains("\"copy_diff\":true"), COPY_DIFF), (argument.contains("\"reshape\":true"), RESHAPE)];
        let other = number(argument, "{\"blob\":").map_or(null_mut(), |it| self.blobs[it].0);
        let factor = argument.split(',').next().and_then(|it| it.parse().ok()).unwrap_or(0.0);
        let (blob, size) = self.blobs[n];
        let asked = Asked {
            call: call as u32, mode: self.mode, options: options.iter().map(|it| it.0 as u32 * it.1).sum(), count: numbers.len(), numbers: numbers.as_ptr(), factor,
            other, data: null_mut(), data_size: size, data_kind: DEVICE * CALLS[call].contains("gpu") as u32,
        };
        let (mut answer, wanted): (Answer, _) = (unsafe { std::mem::zeroed() }, word(told, "\"refusal\":"));
        (self.lent.size, self.heap.done, self.heap.trouble) = (size, vec![], vec![]);
        let status = (self.table.call)(blob, &asked, &mut answer);
        if (status == 1) != wanted.is_some() || status > 1 {
            expect("", wanted.unwrap_or("an answer"), ["an answer", "a refusal", "a failure"].get(status as usize).unwrap_or(&"an unknown status"))?;
        }
        if self.port.level < 2 { return self.compare(told); }
        if let Some(value) = after(told, "\"value\":").and_then(|it| it.split([',', '}']).next()?.parse::<f64>().ok()) {
            if (answer.number - value).abs() > 1e-6 * value.abs() || answer.number.is_nan() { expect("", value, answer.number)?; }
        }
        if let Some(shows) = list(told, "\"shows\":") {
            self.same("the view", answer.view, &shows)?;
            let write: Vec<u8> = list(told, "\"write\":").unwrap_or_default().iter().flat_map(|it| self.bytes(*it)).collect();
            unsafe { write.as_ptr().copy_to(answer.view, write.len()) };
        }
        self.compare(told)?;
        let (actions, no_actions) = (after(told, "\"actions\":[").unwrap_or("]"), |it: &&String| !it.starts_with("free") && !it.starts_with("copy within"));
        let lists: Vec<&str> = actions.split("]]").next().unwrap_or("").split("],[").filter(|_| actions.starts_with('[')).map(|it| it.trim_start_matches('[')).collect();
        let orders = [lists.join(","), lists.iter().rev().copied().collect::<Vec<_>>().join(",")].map(|it| it.replace('"', ""));
        let seen = self.heap.done.iter().filter(no_actions).cloned().collect::<Vec<_>>().join(",");
        expect("the actions ", &orders[(orders[1] == seen) as usize], &seen)?;
        expect("nothing else", "", &self.heap.trouble.join(", "))
    }
    fn compare(&mut self, told: &str) -> Found {
        for (n, told) in after(told, "\"blobs\":[").unwrap_or("").split("\"shape\":").skip(1).enumerate() {
            let mut seen: State = unsafe { std::mem::zeroed() };
            (self.table.state)(self.blobs[n].0, &mut seen);
            let shape = seen.shape[..seen.axes.min(32)].iter().map(|it| it.to_string()).collect::<Vec<_>>().join(",");
            expect(&format!("blob {n} of the shape "), told[1..].split(']').next().unwrap_or(""), &shape)?;
            for ((part, told), it) in ["data", "diff"].iter().zip(told.split("\"head\":").skip(1)).zip(&seen.parts) {
                expect(&format!("the {part} of blob {n} at "), word(&format!(":{told}"), ":").unwrap_or(""), HEADS.get(it.head as usize).unwrap_or(&"no head"))?;
                for (side, at) in ["cpu", "gpu"].iter().zip(it.sides) {
                    let Some(wanted) = list(told, &format!("\"{side}\":")).filter(|_| self.port.level >= 2) else { continue };
                    self.same(&format!("the {side} side of the {part} of blob {n}"), at, &wanted)?;
                }
            }
        }
        Ok(())
    }
}

/// What is wrong with a port.
fn judge(port: &Port, table: &Blobs, line: &str) -> Found {
    let shapes = after(line, "\"shapes\":[").and_then(|it| it.split("]]").next()).ok_or("no vector of blobs")?;
    expect("a port of the edition ", word(line, "\"edition\":").unwrap_or(""), port.edition())?;
    expect("a whole line: ", true, line.ends_with("]}"))?;
    let kind = TYPES.iter().position(|it| Some(it.0) == word(line, "\"type\":")).ok_or("no type that a port may have")?;
    let mut it = Judge { port, table, heap: Heap::default(), lent: Lent { heap: null_mut(), owner: 0, size: 0 }, blobs: vec![], mode: 1, kind };
    it.lent.heap = &mut it.heap;
    let allocators = Box::new(it.lent.allocators());
    let made = shapes.split("],").try_for_each(|shape| it.make(&list(&format!("[{}]", shape.trim_start_matches('[')), "").unwrap_or_default(), &allocators));
    let wrong = made.and_then(|()| judge::steps(line, |call, told| it.play(call, told)));
    it.blobs.iter().filter(|it| !it.0.is_null()).for_each(|it| (table.destroy)(it.0));
    wrong
}

#[no_mangle]
pub extern "C" fn replay_blobs(port: &Port, table: &Blobs, path: *const c_char) -> i32 {
    judge::replayed(unsafe { CStr::from_ptr(path) }, |line| judge(port, table, line))
}

/// A port without blobs is not judged.
fn left_out() {
    let vectors: usize = std::env::args().skip(1).map(|it| std::fs::read_to_string(it).unwrap_or_default().lines().count()).sum();
    println!("no blobs, {vectors} vectors left out");
    std::process::exit((vectors == 0) as i32);
}

extern "C" {
    fn syncedmem_port() -> *const Port;
    fn dlsym(library: *mut c_void, name: *const c_char) -> Option<extern "C" fn() -> *const Blobs>;
}
fn main() {
    let Some(table) = (unsafe { dlsym(null_mut(), b"syncedmem_blobs\0".as_ptr().cast()) }) else { return left_out() };
    judge::exit(|path| replay_blobs(unsafe { &*syncedmem_port() }, unsafe { &*table() }, path.as_ptr()));
}
