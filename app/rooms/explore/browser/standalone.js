// The page that works offline: the Explore component on the data in the page, without a server and without a request.

import explore from "./explore.js";
import { offline } from "../../../kit/browser/offline.js";

offline("explore", explore);
