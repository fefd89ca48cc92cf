// The page that works offline: the Explore component on the data in the page, without a server and without a request.

import Explore from "./explore.js";
import { offline } from "../../../kit/browser/offline.js";
import { hold } from "../../../kit/browser/writers.js";
import { pdfOf } from "../../../kit/browser/writers/vector.js";

hold("vector", { pdfOf });
offline("explore", Explore);
