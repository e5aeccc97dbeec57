//! Replay test vectors on a port with the C ABI of syncedmem_port.h, and judge everything that they say.
//!
//!     syncedmem vectors --out build/vectors
//!     rustc --edition 2021 -O -L build -l port -o build/replay examples/replay.rs
//!     LD_LIBRARY_PATH=build build/replay build/vectors/caffe/tour.jsonl
//!
//! docs/vectors.md defines the format.  Lines have no spaces and their keys have an order, so no JSON library is needed.
//! A difference is one line: id, step, call, expected, seen.  What the port's level does not show (2: actions and bytes,
//! 3: failures) is not judged.

mod judge;
mod lent;
use judge::{after, expect, number, word, Found, HEADS};
use lent::{asked, byte, fill, Heap, Lent, Memory, Port, State, CALLER, DEVICE};
use std::{collections::HashMap, ffi::CStr, ptr::null_mut, slice::from_raw_parts_mut};

const CALLS: [&str; 8] = ["cpu_data", "mutable_cpu_data", "gpu_data", "mutable_gpu_data", "set_cpu_data", "set_gpu_data", "async_gpu_push", "release"];
const WHY: [&str; 4] = ["", "null_data", "not_head_at_cpu", "no_gpu"];
const FLAGS: [(&str, u32); 3] = [("\"own_cpu_data\":", 4), ("\"own_gpu_data\":", 8), ("\"cpu_malloc_use_cuda\":", 16)];
const KINDS: [&str; 2] = ["pageable host memory", "page-locked host memory"];
fn same(what: &str, at: *mut u8, content: usize, size: usize) -> Found {
    let there = unsafe { from_raw_parts_mut(at, size) };
    let wrong = (0..size).find(|k| there[*k] != byte(content, *k));
    wrong.map_or(Ok(()), |k| Err(format!("expected {} in byte {k} of {what}, seen {}", byte(content, k), there[k])))
}

struct Judge<'a> { port: &'a Port, heap: Heap, buffers: HashMap<usize, usize>, memories: Vec<Memory>, mode: u32 }
impl Judge<'_> {
    fn play(&mut self, call: &str, told: &str) -> Found {
        let argument = after(told, "\"argument\":");
        if call == "set_mode" { self.mode = argument.unwrap_or("").starts_with("\"GPU") as u32; }
        if call == "set_mode" { return Ok(()); }
        let n = number(told, "\"memory\":").unwrap_or(0);
        let (side, size) = (call.contains("gpu") as usize, self.memories[n].size);
        let buffer = argument.and_then(|it| number(it.split('}').next()?, "{\"buffer\":")).map(|key| {
            let heap = &mut self.heap;
            let made = *self.buffers.entry(key).or_insert_with(|| heap.block(size, DEVICE * side as u32, CALLER));
            argument.and_then(|it| number(it.split('}').next()?, "\"bytes\":")).map(|it| fill(self.heap.blocks[made].at(), it, self.heap.blocks[made].size));
            made
        });
        if let Some(k) = CALLS.iter().position(|it| *it == call) { self.call(k, told, n, side, buffer)?; }
        self.compare(told, n)?;
        expect("nothing written beside a block: ", true, self.heap.blocks.iter().all(|it| it.guarded()))
    }
    fn call(&mut self, call: usize, told: &str, n: usize, side: usize, buffer: Option<usize>) -> Found {
        let (mut asked, mut answer) = asked(call, self.mode, self.memories[n].size, DEVICE * side as u32);
        if told.contains("{\"own\"") { asked.data = self.memories[n].view[side].wrapping_byte_add(number(told, "\"offset\":").unwrap_or(0) as usize); }
        if let Some(k) = buffer { asked.data = self.heap.blocks[k].at(); }
        let (fails, wanted) = (number(told, "\"fail\":"), word(told, "\"refusal\":"));
        (self.heap.fails, self.heap.done, self.heap.trouble) = (fails.unwrap_or(0) as i64, vec![], vec![]);
        let status = (self.port.call)(self.memories[n].at, &asked, &mut answer);
        self.heap.fails = 0;
        self.heap.synchronize();
        let seen = ["an answer", WHY.get(answer.refusal as usize).unwrap_or(&""), "a failure"][status as usize % 3];
        if !(status != 0 && fails.is_some() || status == 1 && seen.is_empty() && wanted.is_some()) {
            expect("", if fails.is_some() { "a failure" } else { wanted.unwrap_or("an answer") }, seen)?;
        }
        let memory = &mut self.memories[n];
        if status == 0 { memory.view[side] = answer.view; }
        if status == 0 { memory.adopted[side] = buffer.or(memory.adopted[side]); }
        if self.port.level < 2 { return Ok(()); }
        expect("nothing else", "", &self.heap.trouble.join(", "))?;
        if let (Some(shows), true) = (number(told, "\"shows\":"), memory.size > 0) {
            expect("a view of its memory: ", true, self.heap.find(answer.view, memory.size).is_some())?;
            same("the view", answer.view, shows, memory.size)?;
            number(told, "\"write\":").map(|it| fill(answer.view, it, memory.size));
        }
        if let Some(actions) = after(told, "\"actions\":[").and_then(|it| it.split(']').next()) {
            let names = actions.split(',').map(|it| it.trim_matches('"')).filter(|it| !it.starts_with("adopt") && !it.is_empty());
            expect("the actions ", names.collect::<Vec<_>>().join(", "), self.heap.done.join(", "))?;
            if let (Some(locked), true) = (after(told, FLAGS[2].0), actions.contains("allocate_cpu")) {
                expect("", KINDS[locked.starts_with('t') as usize], KINDS[self.heap.made as usize % 2])?;
            }
        }
        let left = self.heap.blocks.iter().filter(|it| it.live && it.owner == n).count();
        expect("blocks left: ", 0, if call == 7 { left } else { 0 })
    }
    fn compare(&mut self, told: &str, n: usize) -> Found {
        let (mut seen, size) = (State::default(), self.memories[n].size);
        (self.port.state)(self.memories[n].at, &mut seen);
        if let Some(head) = word(told, "\"head\":") {
            expect("the head ", head, HEADS.get(seen.head as usize).unwrap_or(&"none"))?;
        }
        for (key, bit) in FLAGS.into_iter().filter(|it| seen.known_flags & it.1 != 0) {
            let wanted = after(told, key).map(|it| it.starts_with('t'));
            expect(key, wanted.unwrap_or(seen.flags & bit != 0), seen.flags & bit != 0)?;
        }
        let bytes = after(told, "\"bytes\":{\"cpu\":").filter(|_| self.port.level >= 2);
        let contents = bytes.map_or([None, None], |it| [number(&format!("\"cpu\":{it}"), "\"cpu\":"), number(it, "\"gpu\":")]);
        for side in 0..2 {
            for k in 0..self.heap.blocks.len() {
                let block = &mut self.heap.blocks[k];
                let own = block.live && block.owner == n && (block.kind == DEVICE) == (side == 1);
                if let (Some(content), true) = (contents[side], self.memories[n].adopted[side].map_or(own, |it| it == k)) {
                    same(["the cpu side", "the gpu side"][side], block.at(), content, size)?;
                }
            }
        }
        Ok(())
    }
}

/// What is wrong with a port; a vector that its level does not show is not run.
fn judge(port: &Port, line: &str) -> Found {
    let sizes = after(line, "\"sizes\":[").and_then(|it| it.split(']').next()).ok_or("no vector of memories")?;
    expect("a port of the edition ", word(line, "\"edition\":").unwrap_or(""), port.edition())?;
    expect("a whole line: ", true, line.ends_with("]}"))?;
    if line.contains("\"fail\":") && port.level < 3 { return Ok(()); }
    let mut it = Judge { port, heap: Heap::default(), buffers: HashMap::new(), memories: vec![], mode: 1 };
    for (owner, size) in sizes.split(',').map(|it| it.parse().unwrap_or(0)).enumerate() {
        let mut lent = Box::new(Lent { heap: &mut it.heap, owner, size });
        let (table, mut at) = (Box::new(lent.allocators()), null_mut());
        expect("create: ", 0, (port.create)(&*table, size, &mut at))?;
        it.memories.push(Memory { at, _lent: (lent, table), size, adopted: [None; 2], view: [null_mut(); 2] });
    }
    let wrong = judge::steps(line, |call, told| it.play(call, told));
    it.memories.iter().for_each(|memory| (port.destroy)(memory.at));
    wrong
}

/// How many of the vectors of a file failed, or -1 if there are none.
#[no_mangle]
pub extern "C" fn replay(port: &Port, path: *const std::ffi::c_char) -> i32 {
    judge::replayed(unsafe { CStr::from_ptr(path) }, |line| judge(port, line))
}

extern "C" { fn syncedmem_port() -> *const Port; }
fn main() {
    judge::exit(|path| replay(unsafe { &*syncedmem_port() }, path.as_ptr()));
}
