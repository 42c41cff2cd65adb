// SPDX-License-Identifier: Apache-2.0
import "./style.css";
import { render } from "preact";
import { App } from "./app";
import { keysStart } from "./keys";
import { Guard } from "./ui/guard";

keysStart();
const root = document.getElementById("app");
if (root)
    render(
        <Guard what="the dashboard">
            <App />
        </Guard>,
        root,
    );
