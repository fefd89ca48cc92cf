// Step through as a page that works offline, on what was on the screen when it was saved.

import Room from "./step.js";
import { offline } from "../../../kit/browser/offline.js";
import { hold } from "../../../kit/browser/writers.js";
import { pdfOf } from "../../../kit/browser/writers/vector.js";

hold("vector", { pdfOf });
offline("step", Room);
