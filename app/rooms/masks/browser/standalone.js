// Masks as a page that works offline, on what was on the screen when it was saved.

import room from "./masks.js";
import { offline } from "../../../kit/browser/offline.js";

offline("masks", room);
