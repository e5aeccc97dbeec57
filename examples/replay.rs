// Replay test vectors on a port: a few lines, and a port to try them on.
//
//     syncedmem vectors --out build/vectors
//     rustc -o build/replay examples/replay.rs && build/replay < build/vectors/caffe/tour.jsonl
//
// You can replay every suite. This program compares heads, refusals and failures; docs/vectors.md says what else you
// can compare. Lines have no spaces and their keys have an order, so no JSON library is needed to read them.

use std::io::BufRead;

const HEADS: [&str; 4] = ["UNINITIALIZED", "HEAD_AT_CPU", "HEAD_AT_GPU", "SYNCED"];

/// Yours: a head as two bits, for the host and for the device.
struct Port {
    head: usize,
    has_gpu: bool,
}

impl Port {
    /// Do one call, or return why it is refused; if an action fails, nothing may change.
    fn perform(&mut self, call: &str, argument: &str, fails: bool) -> Result<(), &'static str> {
        let side = if call.contains("gpu") { 2 } else { 1 };
        let set = call.starts_with("set_") && call.ends_with("data");
        if side == 2 && !self.has_gpu {
            return Err("no_gpu");
        }
        if set && argument.starts_with("null") {
            return Err("null_data");
        }
        if set && argument.starts_with("{\"own\"") {
            return Err("own_buffer");
        }
        if call == "async_gpu_push" && self.head != 1 {
            return Err("not_head_at_cpu");
        }
        if fails {
            return Err("failed");
        }
        match call {
            _ if set => self.head = side,
            "mutable_cpu_data" | "mutable_gpu_data" => self.head = side,
            "cpu_data" | "gpu_data" | "async_gpu_push" => self.head |= side,
            _ => (),
        }
        Ok(())
    }
}

/// The rest of a line after a key of a step.
fn field<'a>(step: &'a str, key: &str) -> Option<&'a str> {
    Some(step.split_once(key)?.1)
}

/// The text value of a key of a step.
fn text<'a>(step: &'a str, key: &str) -> Option<&'a str> {
    field(step, key)?.strip_prefix('"')?.split('"').next()
}

fn main() {
    let (mut count, mut wrong) = (0, 0);
    for line in std::io::stdin().lock().lines().map(Result::unwrap) {
        let mut port = Port { head: 0, has_gpu: text(&line, "\"edition\":") != Some("cpu_only") };
        count += 1;
        if !line.contains("{\"call\":\"") || !line.ends_with("}") {
            println!("no vector: {line:.60}");
            wrong += 1;
        }
        for step in line.split("{\"call\":\"").skip(1) {
            let call = step.split('"').next().unwrap_or("");
            let fails = field(step, "\"fail\":").is_some();
            let outcome = port.perform(call, field(step, "\"argument\":").unwrap_or(""), fails).err();
            let wanted = if fails { Some("failed") } else { text(step, "\"refusal\":") };
            let head = HEADS[port.head];
            if outcome != wanted || text(step, "\"head\":").unwrap_or(head) != head {
                println!("{step} leads to {head}, {}", outcome.unwrap_or("done"));
                wrong += 1;
                break;
            }
        }
    }
    println!("{count} vectors, {wrong} failed");
    std::process::exit((wrong > 0 || count == 0) as i32);
}
