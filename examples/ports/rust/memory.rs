//! Caffe's mirrored memory: one buffer with a host side and a device side.
//!
//! The rules are in `machine.rs`, which `syncedmem diagram --format rust` writes: which actions a call takes, and which
//! side has the current bytes then.  This module only performs the actions.

#![forbid(unsafe_code)]

use crate::allocator::{Allocator, Buffer, Failed, Place, Stream, DEVICE, HOST, PINNED};
use crate::machine::{find, Call, Effect, Head, Mode, Refusal, Side, Verb};
use std::mem::replace;

pub enum Error {
    /// The call is not allowed now, or not with this argument; Caffe has no name for some reasons.
    Refused(Option<Refusal>),
    Failed,
}

impl From<Failed> for Error {
    fn from(_: Failed) -> Self {
        Self::Failed
    }
}

/// `data` is for `set_cpu_data` and `set_gpu_data`, and None there is a null pointer; `stream` is for `async_gpu_push`.
#[derive(Clone, Copy)]
pub struct Argument {
    pub data: Option<Buffer>,
    pub stream: Option<Stream>,
}

pub struct Memory {
    from: Allocator,
    size: usize,
    head: Head,
    facts: u32,
    sides: [Place; 2],
    in_flight: Option<Stream>,
    released: bool,
}

impl Memory {
    pub fn new(size: usize, from: Allocator) -> Self {
        let sides = [Place::Empty, Place::Empty];
        Self { from, size, head: Head::Uninitialized, facts: 0, sides, in_flight: None, released: false }
    }

    pub fn head(&self) -> Head {
        self.head
    }

    pub fn facts(&self) -> u32 {
        self.facts
    }

    pub fn size(&self) -> usize {
        self.size
    }

    pub fn side(&self, side: Side) -> &Place {
        &self.sides[side as usize]
    }

    /// Make a call; `mode` is Caffe's.  After an error nothing has changed.
    pub fn call(&mut self, call: Call, with: Argument, mode: Mode) -> Result<(), Error> {
        let refused = Error::Refused(None);
        if self.released && call != Call::Release {
            return Err(refused);
        }
        let row = find(call, self.head, self.facts, with.data.is_some()).ok_or(refused)?;
        if row.refusal.is_some() {
            return Err(Error::Refused(row.refusal));
        }
        let adopting = if call == Call::SetCpuData { Side::Cpu } else { Side::Gpu } as usize;
        if let Some(buffer) = with.data {
            self.check(adopting, buffer)?;
        }
        if call != Call::CpuData {
            self.wait()?;
        }
        let mut fresh = [Place::Empty, Place::Empty]; // what this call allocates; dropped if a later action fails
        for action in row.actions {
            self.act(action.effect(), with.stream, mode, &mut fresh)?;
            self.released = call == Call::Release;
        }
        for (side, made) in self.sides.iter_mut().zip(fresh).filter(|(_, made)| !made.is_empty()) {
            *side = made;
        }
        if let Some(buffer) = with.data {
            self.sides[adopting] = Place::Adopted(buffer);
        }
        if call == Call::Release {
            self.released = true;
            self.sides = [Place::Empty, Place::Empty];
        }
        self.facts = row.facts_after(self.facts, mode);
        self.head = row.dest;
        Ok(())
    }

    /// Caffe trusts its callers here.
    fn check(&self, side: usize, buffer: Buffer) -> Result<(), Error> {
        if self.sides[side].owns(buffer) {
            return Err(Error::Refused(Some(Refusal::OwnBuffer)));
        }
        let misplaced = (buffer.kind == DEVICE) != (side == Side::Gpu as usize);
        if misplaced || buffer.size < self.size { Err(Error::Refused(None)) } else { Ok(()) }
    }

    /// Wait for a push in flight: what it reads and writes must not be freed or changed.
    fn wait(&mut self) -> Result<(), Failed> {
        self.in_flight.map_or(Ok(()), |stream| self.from.synchronize(stream))?;
        self.in_flight = None;
        Ok(())
    }

    /// A memory of zero bytes has no memory: only its head and its flags move.
    fn act(&mut self, effect: Effect, stream: Option<Stream>, mode: Mode, fresh: &mut [Place; 2]) -> Result<(), Failed> {
        if self.size == 0 {
            return Ok(());
        }
        let made = &mut fresh[effect.side as usize];
        let [cpu, gpu] = &mut self.sides;
        let (mine, other) = if effect.side == Side::Cpu { (cpu, gpu) } else { (gpu, cpu) };
        let here = if made.is_empty() { &mut *mine } else { &mut *made };
        match effect.verb {
            Verb::Allocate => *made = Place::Owned(self.from.allocate(kind(effect.side, mode), self.size)?),
            Verb::Zero => self.from.zero(here, self.size)?,
            Verb::Copy if effect.asynchronous => {
                self.from.copy(here, other, self.size, stream)?;
                self.in_flight = stream;
            }
            Verb::Copy => self.from.copy(here, other, self.size, None)?,
            Verb::Free => {
                if let Place::Owned(block) = replace(mine, Place::Empty) {
                    block.free().map_err(|block| *mine = Place::Owned(block)).map_err(|()| Failed)?;
                }
                self.facts &= !effect.clears; // at once, in case the free of the other side fails
            }
            Verb::Adopt => {}
        }
        Ok(())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        let _ = self.call(Call::Release, Argument { data: None, stream: None }, Mode::Cpu); // nobody can be told
    }
}

fn kind(side: Side, mode: Mode) -> u32 {
    match (side, mode) {
        (Side::Gpu, _) => DEVICE,
        (Side::Cpu, Mode::Gpu) => PINNED,
        (Side::Cpu, Mode::Cpu) => HOST,
    }
}
