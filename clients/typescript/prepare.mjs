// Compiles the package. `npm install FOLDER` runs this without the development packages, so they are installed first.

import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { join } from "node:path";
import { fileURLToPath } from "node:url";

const folder = fileURLToPath(new URL(".", import.meta.url));
const compiler = join(folder, "node_modules", ".bin", "tsc");

// Settings of the npm that runs this belong to another package.
const own = Object.entries(process.env).filter(([name]) => !/^npm_(config_(local_)?prefix|package|lifecycle)/i.test(name));
const options = { cwd: folder, env: Object.fromEntries(own), stdio: "inherit" };

if (!existsSync(compiler)) {
  execFileSync(
    "npm",
    ["install", "--include=dev", "--ignore-scripts", "--no-audit", "--no-fund", "--no-package-lock", "--no-save"],
    options,
  );
}
execFileSync(compiler, ["-p", "tsconfig.json"], options);
