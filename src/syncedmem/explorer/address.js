/** The address of a page: what it asks for, and what in it cannot be understood. */

import { modesOf } from "./machine.js";

export const FAIL = "!";

/**
 * The trace of an address.  What it does not say, or not so that it can be understood, is as it usually is.
 *
 * @param {string} address
 * @param {object} material what the page was given
 * @param {(edition: string, mode: string) => Machine} machineOf
 * @returns {Trace & {unclear: string[]}}
 */
export function readAddress(address, material, machineOf) {
  const said = new URLSearchParams(address.replace(/^#/, "").replaceAll("+", "%2B"));
  const unclear = [];
  const { editions } = material.machine;
  const modes = [...modesOf(editions[0]).values()];
  const { usual, most } = { usual: material.sizes.default, most: material.sizes.most };
  const named = (key, list, instead) => {
    const name = said.get(key) ?? instead;
    if (list.some((it) => it.name === name)) return name;
    unclear.push(`${key}=${name}: there is none of that name, so it is ${instead}`);
    return instead;
  };
  const number = (key, highest, instead) => {
    const text = said.get(key) ?? `${instead}`;
    if (/^\d+$/.test(text) && Number(text) <= highest) return Number(text);
    unclear.push(`${key}=${text}: it has to be a number from 0 to ${highest}, so it is ${instead}`);
    return instead;
  };
  const edition = named("edition", editions, editions[0].name);
  const mode = named("mode", modes, material.mode);
  const size = number("size", most, usual);
  const asked = (said.get("calls") ?? "").split(",").filter(Boolean);
  const words = asked.slice(0, material.most.steps);
  if (words.length < asked.length) unclear.push(`calls: there are ${asked.length}, and all after ${words.length} are left out`);
  const stands = number("at", words.length, words.length);
  const known = machineOf(edition, mode).entries;
  const calls = words.map((word) => readCall(word, known, edition, unclear));
  unclear.push(...strangers([...said.keys()]));
  return { edition, size, mode, calls: calls.filter(Boolean), at: calls.slice(0, stands).filter(Boolean).length, unclear };
}

/** A call, with the number of the action that is to fail; null if there is no such call. */
function readCall(word, known, edition, unclear) {
  const [name, fail = "0", ...rest] = word.split(FAIL);
  if (!known.has(name)) {
    unclear.push(`${word}: ${edition} has no such call, so it is left out`);
    return null;
  }
  if (/^\d+$/.test(fail) && !rest.length) return { name, fail: Number(fail) };
  unclear.push(`${word}: behind ${FAIL} has to be the number of an action, so none fails`);
  return { name, fail: 0 };
}

const KEYS = ["edition", "size", "mode", "at", "calls"];

/** Keys that nobody reads: unknown ones, and those that were there before. */
function* strangers(keys) {
  for (const [k, key] of keys.entries()) {
    if (!KEYS.includes(key)) yield `${key}: there is no such thing to say; there are ${KEYS.join(", ")}`;
    else if (keys.indexOf(key) < k) yield `${key}: it is said twice, and the first counts`;
  }
}

/** The address of what was done: the other way round. */
export function writtenAddress({ machine, size, mode, records, cursor }) {
  const calls = records.map(({ entry, fail }) => (fail ? `${entry.name}${FAIL}${fail}` : entry.name));
  const parts = [`edition=${machine.edition.name}`, `size=${size}`, `mode=${mode}`];
  if (cursor !== records.length) parts.push(`at=${cursor}`);
  if (calls.length) parts.push(`calls=${calls.join(",")}`);
  return `#${parts.join("&")}`;
}
