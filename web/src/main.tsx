// SPDX-License-Identifier: Apache-2.0
import "./style.css";
import { render } from "preact";
import { App } from "./app";
import { keysStart } from "./keys";

keysStart();
const root = document.getElementById("app");
if (root) render(<App />, root);
