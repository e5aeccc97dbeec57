"""The generated C header and Rust module compile without a warning, and their results are the model's."""

from __future__ import annotations

import re
import subprocess
from typing import TYPE_CHECKING

import pytest
from exported import exported
from machines import PETSC, TCP
from programs import program

from syncedmem.model import DeclarationError
from syncedmem.model.caffe import EDITIONS, EVERYTHING, MODE
from syncedmem.model.states import space, stepper
from syncedmem.spec.vectors.operations import OWN_BUFFER

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from syncedmem.model.declaration import Machine

pytestmark = pytest.mark.deep

C = """\
#include <stdio.h>
#include "machine.h"
int main(void) {
  int call, head, data, mode;
  unsigned facts;
  for (size_t action = 0; action < sizeof smd_effects / sizeof *smd_effects; ++action) {
    const smd_effect *it = &smd_effects[action];
    printf("%d %d %d %u %u\\n", it->verb, it->side, it->asynchronous, it->sets, it->clears);
  }
  while (scanf("%d %d %u %d %d", &call, &head, &facts, &data, &mode) == 5) {
    const smd_row *row = smd_find((smd_call)call, (smd_head)head, facts, data);
    if (row == NULL) return 1;
    unsigned after = facts, slots = sizeof row->actions / sizeof row->actions[0];
    for (unsigned i = 0; i < slots; ++i) {
      const smd_effect *it = &smd_effects[row->actions[i]];
      if ((row->actions[i] == SMD_NONE) != (i >= row->actions_count)) return 2;
      after = (after & ~it->clears) | it->sets;
    }
    if ((after ^ smd_facts_after(row, facts, (smd_mode)mode)) & ~DECIDED) return 3;
    if (call == SMD_RELEASE && smd_find(SMD_RELEASE, row->dest, after, 0)->actions_count) return 4;
    printf("%d %u %d", row->dest, smd_facts_after(row, facts, (smd_mode)mode), row->refusal);
    for (unsigned i = 0; i < row->actions_count; ++i) printf(" %d", row->actions[i] - 1);
    printf("\\n");
  }
  return smd_find(SMD_CPU_DATA, (smd_head)9, 0, 0) != NULL;
}
"""
RUST = """\
mod machine;
use machine::*;
fn main() {
    let call = |number: usize| TABLE.iter().map(|row| row.call).find(|it| *it as usize == number).unwrap();
    let head = |number: usize| TABLE.iter().map(|row| row.head).find(|it| *it as usize == number).unwrap();
    let modes = [Mode::Cpu, Mode::Gpu];
    let mut actions: Vec<Action> = TABLE.iter().flat_map(|row| row.actions).copied().collect();
    actions.sort_by_key(|it| *it as usize);
    actions.dedup();
    for it in actions.into_iter().map(Action::effect) {
        println!("{} {} {} {} {}", it.verb as u8 + 1, it.side as u8, it.asynchronous as u8, it.sets, it.clears);
    }
    for line in std::io::stdin().lines() {
        let line = line.unwrap();
        let n: Vec<usize> = line.split(' ').map(|word| word.parse().unwrap()).collect();
        let (facts, mode) = (n[2] as u32, modes[n[4]]);
        let row = find(call(n[0]), head(n[1]), facts, n[3] == 1).unwrap();
        let after = row.actions.iter().map(|it| it.effect()).fold(facts, |facts, it| facts & !it.clears | it.sets);
        assert_eq!((after ^ row.facts_after(facts, mode)) & !DECIDED, 0);
        assert!(row.call != Call::Release || find(Call::Release, row.dest, after, false).unwrap().actions.is_empty());
        let refusal = row.refusal.map_or(0, |refusal| refusal as usize + 1);
        print!("{} {} {}", row.dest as usize, row.facts_after(facts, mode), refusal);
        row.actions.iter().for_each(|action| print!(" {}", *action as usize));
        println!();
    }
}
"""
"""They print what each action does, answer questions, and check that the facts of a row are those of its actions."""


def questions(edition: str) -> dict[str, str]:
    """Return every reachable state with every call, NULL and the destructor as numbers, with the machine's answers."""
    found: dict[str, str] = {}
    machine = EDITIONS[edition]
    heads, calls, actions, refusals = (
        [*words] for words in (EVERYTHING.heads, EVERYTHING.calls, EVERYTHING.actions, EVERYTHING.refusals)
    )
    for state in space(machine).steps:
        mode = MODE.values.index(state.settings[0])
        for asked in stepper(machine).inputs(settings=False, end=True):
            step = stepper(machine).step(state, asked)
            assert step is not None
            refusal = refusals.index(step.refusal) + 1 if step.refusal else 0
            done = [actions.index(action) for action in step.actions]
            question = (
                calls.index(str(asked.call)),
                heads.index(state.head),
                mask(state.facts),
                asked.data,
                mode,
            )
            answer = (heads.index(step.after.head), mask(step.after.facts), refusal, *done)
            found[" ".join(str(int(number)) for number in question)] = " ".join(map(str, answer))
    return found


def mask(facts: Iterable[str]) -> int:
    """Return the bits of some facts."""
    return sum(1 << number for number, fact in enumerate(EVERYTHING.facts) if fact in facts)


def effects(machine: Machine) -> list[str]:
    """Return what each action does, as numbers."""
    verbs = list(dict.fromkeys(action.does for action in EVERYTHING.actions.values()))
    return [
        f"{verbs.index(action.does) + 1} {EVERYTHING.sides.index(action.side)} {int(action.queued)} "
        f"{mask(action.sets)} {mask(action.clears)}"
        for action in machine.actions.values()
    ]


def decided(edition: str) -> int:
    """Return the bits of the facts that the mode decides."""
    return mask([by[0] for action in EDITIONS[edition].actions.values() for by in action.by_setting])


def ask(binary: Path, edition: str) -> list[str]:
    text = "\n".join(questions(edition)) + "\n"
    return subprocess.run([binary], input=text, capture_output=True, text=True, check=True).stdout.splitlines()


@pytest.mark.parametrize("edition", EDITIONS)
def test_c_is_the_machine(edition: str, tmp_path: Path) -> None:
    """The first effect is that of no action; a second release does nothing."""
    (tmp_path / "machine.h").write_text(exported("c", edition), encoding="utf-8")
    (tmp_path / "main.c").write_text(C.replace("DECIDED", f"{decided(edition)}u"), encoding="utf-8")
    strict = ["-std=c99", "-pedantic", "-Wall", "-Wextra", "-Werror"]
    subprocess.run([program("cc"), *strict, "-o", str(tmp_path / "main"), str(tmp_path / "main.c")], check=True)

    assert ["0 2 0 0 0", *effects(EVERYTHING), *questions(edition).values()] == ask(tmp_path / "main", edition)


@pytest.mark.parametrize("edition", EDITIONS)
def test_rust_is_the_machine(edition: str, tmp_path: Path) -> None:
    """Unused items are the only warnings that are allowed: the program is not a complete port."""
    (tmp_path / "machine.rs").write_text(exported("rust", edition), encoding="utf-8")
    source = RUST.replace("DECIDED", f"{decided(edition)}u32")
    (tmp_path / "main.rs").write_text("#![allow(dead_code)]\n" + source, encoding="utf-8")
    command = [program("rustc"), "-D", "warnings", "-o", str(tmp_path / "main"), str(tmp_path / "main.rs")]
    subprocess.run(command, check=True)

    assert [*effects(EDITIONS[edition]), *questions(edition).values()] == ask(tmp_path / "main", edition)


def test_a_port_can_refuse_the_buffer_of_a_memory_itself() -> None:
    """No row refuses it, and the vectors name it."""
    assert OWN_BUFFER == "own_buffer"
    assert exported("c").count("SMD_REFUSED_OWN_BUFFER = 4") == exported("rust").count("OwnBuffer = 3") == 1


# --- the header of ports

PORT = """\
#include "syncedmem_port.h"
static int create(const smp_allocators *from, size_t size, void **memory) {
  return from->allocate(from->context, SMP_DEVICE, size, memory) ? SMP_FAILED : SMP_OK;
}
static int call(void *memory, const smp_arguments *asked, smp_result *result) {
  result->view = memory;
  return asked->call == SMP_CALL_RELEASE ? SMP_OK : SMP_REFUSED;
}
static void state(const void *memory, smp_state *seen) { seen->size = memory == NULL; seen->head = SMP_SYNCED; }
static void destroy(void *memory) { (void)memory; }
static const smp_port port = {SMP_ABI_VERSION, 0, SMP_SIDES, "port", "caffe", NULL, create, call, state, destroy};
const smp_port *syncedmem_port(void) { return &port; }
"""
VERSION_1 = {
    "OK": 0, "REFUSED": 1, "FAILED": 2,
    "UNINITIALIZED": 0, "HEAD_AT_CPU": 1, "HEAD_AT_GPU": 2, "SYNCED": 3,
    "CALL_CPU_DATA": 0, "CALL_MUTABLE_CPU_DATA": 1, "CALL_GPU_DATA": 2, "CALL_MUTABLE_GPU_DATA": 3,
    "CALL_SET_CPU_DATA": 4, "CALL_SET_GPU_DATA": 5, "CALL_ASYNC_GPU_PUSH": 6, "CALL_RELEASE": 7,
    "REFUSED_NULL_DATA": 1, "REFUSED_NOT_HEAD_AT_CPU": 2, "REFUSED_NO_GPU": 3, "REFUSED_OTHER": 255,
    "MODE_CPU": 0, "MODE_GPU": 1,
    "FLAG_OWN_CPU_DATA": 4, "FLAG_OWN_GPU_DATA": 8, "FLAG_CPU_MALLOC_USE_CUDA": 16,
    "HOST": 0, "PINNED": 1, "DEVICE": 2,
}  # fmt: skip


@pytest.mark.parametrize("compiler", ["cc -std=c99", "c++ -std=c++11", "c++ -std=c++20"])
def test_the_header_of_ports_is_c_and_cplusplus(compiler: str, tmp_path: Path) -> None:
    command, standard = compiler.split()
    (tmp_path / "syncedmem_port.h").write_text(exported("port-header"), encoding="utf-8")
    (tmp_path / "port.c").write_text(PORT, encoding="utf-8")
    language = ["-x", "c++" if command == "c++" else "c"]
    strict = [standard, "-pedantic", "-Wall", "-Wextra", "-Werror"]
    done = subprocess.run([program(command), *strict, *language, "-c", "port.c"], cwd=tmp_path, check=False)
    assert not done.returncode


def test_the_numbers_of_a_version_of_the_header_never_change() -> None:
    """A port that was built with an earlier header of the version still works: names may be added, none may change."""
    header = exported("port-header")
    numbers = {name: int(number) for name, number in re.findall(r"^  SMP_(\w+) = (\d+)", header, re.MULTILINE)}
    assert "SMP_ABI_VERSION 2u" in header
    assert VERSION_1.items() <= numbers.items()


def test_the_header_of_ports_is_the_same_for_all_editions() -> None:
    assert {exported("port-header")} == {exported("port-header", edition) for edition in EDITIONS}
    with pytest.raises(DeclarationError):
        exported("port-header", "none")


@pytest.mark.deep
def test_headers_of_two_machines_go_into_one_file(tmp_path: Path) -> None:
    """The second one is not left out.  Of two editions with the same names only one can be there, and is told."""
    for machine in (TCP, PETSC):
        (tmp_path / f"{machine}.h").write_text(exported("c", machine))
    (tmp_path / "early.h").write_text(exported("c", "early"))
    (tmp_path / "caffe.h").write_text(exported("c"))
    includes = "".join(f'#include "{name}.h"\n' for name in ("tcp", "petsc", "caffe"))
    main = f"{includes}int main(void) {{ return TCP_CLOSED + PETSC_CPU == 1 ? 0 : 1; }}\n"
    for name, more in (("both", ""), ("same", '\n#include "caffe.h"\n'), ("wrong", '\n#include "early.h"\n')):
        (tmp_path / f"{name}.c").write_text(more + main)
        command = [program("cc"), "-std=c99", "-Wall", "-Werror", "-Wno-unused", "-o", name, f"{name}.c"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode == 0) == (name != "wrong"), done.stderr
        assert name != "wrong" or "that of another machine" in done.stderr
