// Reads {module, config} and prints what the TLA+ checker says after exploring every state.
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { check_spec_with_cfg, initSync } from "tla-checker";

const { module, config } = JSON.parse(readFileSync(0, "utf8"));
const wasm = createRequire(import.meta.url).resolve("tla-checker/tla_checker_bg.wasm");
initSync({ module: readFileSync(wasm) });
console.log(check_spec_with_cfg(module, config, "{}", 1_000_000, 1_000_000, true, false));
