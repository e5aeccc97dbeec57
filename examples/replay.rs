// Replay test vectors on a port: ten lines, and a port to try them on.
//
//     syncedmem vectors --out build/vectors --suite caffe/tour
//     rustc -o build/replay examples/replay.rs && build/replay < build/vectors/caffe/tour.jsonl
//
// Lines have no spaces and their keys have an order, so they can be read without a JSON library.

use std::io::BufRead;

const HEADS: [&str; 4] = ["UNINITIALIZED", "HEAD_AT_CPU", "HEAD_AT_GPU", "SYNCED"];

/// Yours: a head as two bits, for the host and for the device.
fn perform(head: usize, call: &str) -> usize {
    let side = if call.contains("gpu") { 2 } else { 1 };
    if cfg!(wrong) && call == "gpu_data" {
        return 2;
    }
    match call {
        "set_cpu_data" | "set_gpu_data" | "mutable_cpu_data" | "mutable_gpu_data" => side,
        "cpu_data" | "gpu_data" => head | side,
        "async_gpu_push" if head == 1 => 3,
        _ => head,
    }
}

fn value<'a>(step: &'a str, key: &str) -> Option<&'a str> {
    step.split_once(key)?.1.split('"').next()
}

fn main() {
    let mut wrong = 0;
    for line in std::io::stdin().lock().lines().map(Result::unwrap) {
        let mut head = 0;
        for step in line.split("{\"call\":\"").skip(1) {
            head = perform(head, step.split('"').next().unwrap());
            if value(step, "\"head\":\"").is_some_and(|want| want != HEADS[head]) {
                println!("{} leads to {}", step, HEADS[head]);
                wrong += 1;
            }
        }
    }
    std::process::exit((wrong > 0) as i32);
}
