"""The ports in C and Rust of docs/exports.md are compiled unchanged, and run with actions that fail."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest
from exported import exported
from programs import program

from syncedmem.model import EDITIONS

PAGE = (Path(__file__).parents[2] / "docs" / "exports.md").read_text(encoding="utf-8")
C = """\
#include <stdio.h>
#include "machine.h"
typedef struct { smd_head head; unsigned facts; int live, left, released; } memory;
static int allocates(smd_action action) { return action == SMD_ALLOCATE_CPU || action == SMD_ALLOCATE_GPU; }
static int perform(memory *m, smd_action action) {
  if (m->left-- == 0) return 0;
  if (allocates(action)) ++m->live;
  if (action == SMD_FREE_CPU || action == SMD_FREE_GPU) --m->live;
  return 1;
}
static void undo(memory *m, smd_action action) { if (allocates(action)) --m->live; }
int answer(memory *m, smd_call call, int has_data, smd_mode mode);
BLOCK
int main(void) {
  memory m = {SMD_UNINITIALIZED, 0, 0, -1, 0};
  const smd_call calls[] = {SMD_CPU_DATA, SMD_GPU_DATA};
  for (int n = 0; n < 2; ++n)
    for (int left = 0; left < 3; ++left) {
      m.left = left;
      int found = answer(&m, calls[n], 0, SMD_MODE_CPU);
      printf("%d %d %u %d\\n", found, m.head, m.facts, m.live);
    }
  int found = answer(&m, SMD_SET_CPU_DATA, 0, SMD_MODE_CPU);
  printf("%d %d %u %d\\n", found, m.head, m.facts, m.live);
  m.left = 1;
  found = answer(&m, SMD_RELEASE, 0, SMD_MODE_CPU);
  printf("%d %d %u %d\\n", found, m.head, m.facts, m.live);
  m.left = -1;
  found = answer(&m, SMD_CPU_DATA, 0, SMD_MODE_CPU);
  printf("%d %d %u %d\\n", found, m.head, m.facts, m.live);
  found = answer(&m, SMD_RELEASE, 0, SMD_MODE_CPU);
  printf("%d %d %u %d\\n", found, m.head, m.facts, m.live);
  found = answer(&m, (smd_call)99, 0, SMD_MODE_CPU);
  printf("%d %d %u %d\\n", found, m.head, m.facts, m.live);
  return 0;
}
"""
RUST = """\
#![allow(dead_code)]
mod machine;
use machine::*;
#[derive(Debug)]
enum Error { Refused(Refusal), NoSuchCall, Failed }
struct Memory { head: Head, facts: u32, live: i32, left: i32, released: bool }
fn allocates(action: Action) -> bool { matches!(action, Action::AllocateCpu | Action::AllocateGpu) }
impl Memory {
    fn perform(&mut self, action: Action) -> Result<(), Error> {
        self.left -= 1;
        if self.left == -1 { return Err(Error::Failed); }
        if allocates(action) { self.live += 1; }
        if matches!(action, Action::FreeCpu | Action::FreeGpu) { self.live -= 1; }
        Ok(())
    }
    fn undo(&mut self, action: Action) { if allocates(action) { self.live -= 1; } }
    fn told(&mut self, call: Call) {
        let found = match self.answer(call, false, Mode::Cpu) {
            Ok(()) => 0,
            Err(Error::Failed) => -1,
            Err(Error::NoSuchCall) => -2,
            Err(Error::Refused(refusal)) => refusal as i32 + 1,
        };
        println!("{} {} {} {}", found, self.head as i32, self.facts, self.live);
    }
}
BLOCK
fn main() {
    let mut m = Memory { head: Head::Uninitialized, facts: 0, live: 0, left: -1, released: false };
    for call in [Call::CpuData, Call::GpuData] {
        for left in 0..3 { m.left = left; m.told(call); }
    }
    m.told(Call::SetCpuData);
    m.left = 1;
    m.told(Call::Release);
    m.left = -1;
    m.told(Call::CpuData);
    m.told(Call::Release);
}
"""
# The results of each call if its first action fails, its second, and none: outcome, head, facts, live blocks.
TOLD = ["-1 0 0 0", "-1 0 0 0", "0 1 5 1", "-1 1 5 1", "-1 1 5 1", "0 3 15 2", "1 3 15 2"]
# A release whose second free fails: one side is still owned. A call then, which is refused. The next release, which
# frees it. And a call that the edition does not have, if the language can express it.
RELEASED = {"c": ["-1 3 10 1", "-2 3 10 1", "0 3 0 0", "-2 3 0 0"], "rust": ["-1 3 10 1", "-2 3 10 1", "0 3 0 0"]}


def told(language: str, folder: Path) -> list[str]:
    """Return the output of the page's code."""
    (block,) = re.findall(rf"^```{language}\n(.*?)^```", PAGE, re.MULTILINE | re.DOTALL)
    name, header = ("machine.h", exported("c")) if language == "c" else ("machine.rs", exported("rust"))
    (folder / name).write_text(header, encoding="utf-8")
    (folder / f"main.{language}").write_text((C if language == "c" else RUST).replace("BLOCK", block), "utf-8")
    strict = {
        "c": [program("cc"), "-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror", "-o", "main", "main.c"],
        "rust": [program("rustc"), "-D", "warnings", "-o", "main", "main.rust"],
    }
    subprocess.run(strict[language], cwd=folder, check=True)
    return subprocess.run([folder / "main"], capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.deep
@pytest.mark.parametrize("language", ["c", "rust"])
def test_a_port_of_the_page_leaks_nothing_when_an_action_fails(language: str, tmp_path: Path) -> None:
    assert [*TOLD, *RELEASED[language]] == told(language, tmp_path)


@pytest.mark.parametrize("edition", EDITIONS)
def test_only_allocations_come_before_what_can_fail(edition: str) -> None:
    """Release is an exception. Adopting cannot fail, because it only remembers a pointer."""
    adopts, allocates = {"adopt_cpu", "adopt_gpu"}, {"allocate_cpu", "allocate_gpu"}
    rows = [row for row in EDITIONS[edition].rows if row.call != "release"]
    before = {action for row in rows if row.actions and row.actions[-1] not in adopts for action in row.actions[:-1]}

    assert allocates & before
    assert before <= allocates
