// SPDX-License-Identifier: Apache-2.0
// Validates a bill of materials against CycloneDX's schema, strictly. usage: node validate_sbom.mjs MODULES FILE
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";

const [modules, file] = process.argv.slice(2);
const { Spec, Validation } = createRequire(`${modules}/`)("@cyclonedx/cyclonedx-library");
const problems = await new Validation.JsonStrictValidator(Spec.Version.v1dot6).validate(readFileSync(file, "utf8"));
if (problems !== null) {
    console.error(JSON.stringify(problems, null, 1));
    process.exit(1);
}
