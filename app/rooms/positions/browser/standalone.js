// Positions as a page that works offline, on what was on the screen when it was saved.

import room from "./positions.js";
import { offline } from "../../../kit/browser/offline.js";

offline("positions", room);
