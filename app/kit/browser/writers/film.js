// A room shown one moment after the other, as a file: animated GIF, WebM or MP4. Every frame has the title above and the caption below.

import { alone, pictured } from "../drawing.js";
import { sizeOf } from "../save.js";
import { wrapped } from "../scene.js";
import { fill } from "../dom.js";
import { WORDS as words } from "../words.js";
import { Gif, paletteOf } from "./gif.js";
import { mp4, webm } from "./video.js";

/** @typedef {import("../types.js").Film} Film */
/** @typedef {"gif" | "mp4" | "webm"} Kind */
/** @typedef {{signal: AbortSignal, tell: (text: string) => void, colours: Record<"background" | "ink" | "mute", string>}} How */
/** @typedef {{text: string, width: number, height: number, seconds: number}} Still */
/** @typedef {{name: string, config: VideoEncoderConfig}} Codec as a file names it, and as the browser does */
/** @typedef {{canvas: HTMLCanvasElement, context: CanvasRenderingContext2D, stills: Still[], paint: (i: number) => Promise<void>}} Reel */

const [WIDTH, HEIGHT] = [1280, 720];
const MARGIN = 28;
const [TITLE, CAPTION] = [25, 16]; // pixels
const MOST_LARGER = 2.5; // than on the screen
const UNUSUAL = 1.3; // times as large as half of the drawings: such a one is made smaller by itself
const MOST_FRAMES = 240;
const MOST_SECONDS = 90;
const MOST_BYTES = 24_000_000;
const SAMPLES = 6; // frames that a palette is made of
const EVERY = 0.5; // seconds after which a frame that stays is written once more, so that a player can go there
const KEY_EVERY = 4; // seconds
const BITRATE = 4_000_000;
const CODECS = {
  webm: [
    ["V_VP9", "vp09.00.31.08"],
    ["V_VP8", "vp8"],
  ],
  mp4: [
    ["avc1", "avc1.640020"],
    ["avc1", "avc1.4d0020"],
    ["avc1", "avc1.42002a"],
  ],
};
const RECORDED = { webm: ["video/webm;codecs=vp9", "video/webm"], mp4: ["video/mp4;codecs=avc1", "video/mp4"] };

/** @param {AbortSignal} signal */
function going(signal) {
  if (signal.aborted) throw { sentence: words.film_cancelled };
}

/** The reason why a film is refused; none for one that is not. @param {Film} film */
export function refusal({ frames }) {
  const seconds = frames.reduce((sum, frame) => sum + frame.seconds, 0);
  if (frames.length > MOST_FRAMES || seconds > MOST_SECONDS)
    return fill(words.film_long, {
      n: frames.length,
      s: Math.round(seconds),
      frames: MOST_FRAMES,
      seconds: MOST_SECONDS,
    });
  return "";
}

/** The file, and what is to be said about it. @param {Film} film @param {Kind} kind @param {How} how @returns {Promise<{blob: Blob, note: string}>} */
export async function filmed(film, kind, how) {
  /** @type {{codec?: Codec | null, type?: string}} */
  let way = {};
  /** @type {Still[]} */
  let stills = [];
  try {
    const refused = refusal(film);
    if (refused) throw { sentence: refused };
    if (kind !== "gif") way = await wayOf(kind);
    stills = await drawn(film, how);
  } finally {
    film.end(); // the room is as it was before the first frame is painted
  }
  const reel = reelOf(film, stills, how);
  if (kind === "gif") return { blob: await asGif(film, reel, how), note: "" };
  if (way.codec) return { blob: await encoded(film, kind, reel, how, way.codec), note: "" };
  return { blob: await recorded(reel, how, /** @type {string} */ (way.type)), note: words.film_untagged };
}

/** How this browser makes a video: by its encoder or, where it has none, by its recorder. @param {"webm" | "mp4"} kind */
async function wayOf(kind) {
  const codec = await codecOf(kind);
  if (codec) return { codec };
  const type = RECORDED[kind].find((one) => globalThis.MediaRecorder?.isTypeSupported(one));
  if (!type) throw { sentence: kind === "mp4" ? words.film_no_mp4 : words.film_no_webm };
  return { type };
}

/** All moments as drawings. @param {Film} film @param {How} how */
async function drawn({ frames }, { signal, tell }) {
  /** @type {Still[]} */
  const stills = [];
  for (const [i, frame] of frames.entries()) {
    going(signal);
    tell(fill(words.film_drawing, { i: i + 1, n: frames.length }));
    const { group, width, height } = await frame.draw();
    stills.push({ text: alone({ group, width, height }), width, height, seconds: frame.seconds });
    await breath();
  }
  return stills;
}

/** How far the drawings reach that are of a usual size. @param {number[]} all */
function usual(all) {
  const sorted = [...all].sort((a, b) => a - b);
  const most = UNUSUAL * sorted[Math.floor(sorted.length / 2)];
  return Math.max(...sorted.filter((size) => size <= most));
}

/** @param {number} most @param {string[]} lines */
const atMost = (most, lines) =>
  lines.length > most ? [...lines.slice(0, most - 1), `${lines[most - 1].slice(0, -2)}…`] : lines;

/** @param {Film} film @param {Still[]} stills @param {How} how @returns {Reel} */
function reelOf(film, stills, { colours }) {
  const canvas = document.createElement("canvas");
  [canvas.width, canvas.height] = [WIDTH, HEIGHT];
  const context = /** @type {CanvasRenderingContext2D} */ (
    canvas.getContext("2d", { alpha: false, willReadFrequently: true })
  );
  const font = getComputedStyle(document.body).fontFamily;
  const title = atMost(2, wrapped(film.title, WIDTH - 2 * MARGIN, TITLE, font, 650));
  const caption = atMost(3, wrapped(film.caption, WIDTH - 2 * MARGIN, CAPTION, font));
  const top = MARGIN + title.length * TITLE * 1.25 + 8;
  const low = HEIGHT - MARGIN / 2 - caption.length * CAPTION * 1.35 - 8;
  const [wide, high] = [usual(stills.map(({ width }) => width)), usual(stills.map(({ height }) => height))];
  const room = [WIDTH - 2 * MARGIN, low - top];
  const common = Math.min(MOST_LARGER, room[0] / wide, room[1] / high); // the same for all: nothing jumps
  /** @param {number} i */
  const paint = async (i) => {
    const { text, width, height } = stills[i];
    const image = await pictured(text);
    const scale = Math.min(common, room[0] / width, room[1] / height);
    context.fillStyle = colours.background;
    context.fillRect(0, 0, WIDTH, HEIGHT);
    context.imageSmoothingQuality = "high";
    context.drawImage(image, (WIDTH - scale * Math.max(wide, width)) / 2, top, scale * width, scale * height);
    const lines = (
      /** @type {string[]} */ all,
      /** @type {number} */ y,
      /** @type {number} */ size,
      /** @type {number} */ weight,
      /** @type {string} */ colour,
    ) => {
      context.font = `${weight} ${size}px ${font}`;
      context.fillStyle = colour;
      all.forEach((line, k) => context.fillText(line, MARGIN, y + (k + 0.8) * size * (size === TITLE ? 1.25 : 1.35)));
    };
    lines(title, MARGIN - 6, TITLE, 650, colours.ink);
    lines(caption, low + 8, CAPTION, 400, colours.mute);
  };
  return { canvas, context, stills, paint };
}

/** So that the page goes on meanwhile. */
const breath = () => new Promise((done) => setTimeout(done, 0));

/** @param {number} bytes */
function fits(bytes) {
  if (bytes > MOST_BYTES) throw { sentence: fill(words.film_large, { most: sizeOf(MOST_BYTES) }) };
}

/** @param {import("../types.js").About} about */
const told = (about) => [about.title, about.alt, about.caption, about.snippet].filter(Boolean).join("\n\n");

/** @param {Film} film @param {Reel} reel @param {How} how */
async function asGif(film, { context, stills, paint }, { signal, tell }) {
  const pixels = () => context.getImageData(0, 0, WIDTH, HEIGHT).data;
  const samples = [];
  const n = Math.min(SAMPLES, stills.length);
  for (let i = 0; i < n; i++) {
    going(signal);
    await paint(Math.round((i * (stills.length - 1)) / Math.max(1, n - 1)));
    samples.push(pixels());
  }
  const gif = new Gif(WIDTH, HEIGHT, paletteOf(samples), told(film));
  for (const [i, { seconds }] of stills.entries()) {
    going(signal);
    tell(fill(words.film_writing, { i: i + 1, n: stills.length }));
    await paint(i);
    gif.add(pixels(), seconds);
    fits(gif.size);
    await breath();
  }
  return new Blob([gif.bytes], { type: "image/gif" });
}

/** @param {"webm" | "mp4"} kind @returns {Promise<Codec | null>} */
async function codecOf(kind) {
  if (!globalThis.VideoEncoder) return null; // as without a secure connection
  for (const [name, codec] of CODECS[kind]) {
    const config = configOf(codec);
    const found = await VideoEncoder.isConfigSupported(config).catch(() => null);
    if (found?.supported) return { name, config };
  }
  return null;
}

/** @param {string} codec @returns {VideoEncoderConfig} */
const configOf = (codec) => ({
  codec,
  width: WIDTH,
  height: HEIGHT,
  bitrate: BITRATE,
  framerate: 10,
  latencyMode: "quality",
  ...(codec.startsWith("avc1") ? { avc: { format: "avc" } } : {}),
});

/** @param {Film} film @param {"webm" | "mp4"} kind @param {Reel} reel @param {How} how @param {Codec} codec */
async function encoded(film, kind, { canvas, stills, paint }, { signal, tell }, { name, config }) {
  /** @type {import("./video.js").Chunk[]} */
  const chunks = [];
  /** @type {Uint8Array | undefined} */
  let description;
  let failed = null;
  let size = 0;
  const encoder = new VideoEncoder({
    output: (chunk, more) => {
      const data = new Uint8Array(chunk.byteLength);
      chunk.copyTo(data);
      size += data.length;
      chunks.push({ data, at: chunk.timestamp / 1000, isKey: chunk.type === "key" });
      const found = more?.decoderConfig?.description;
      if (found)
        description = new Uint8Array(
          /** @type {ArrayBuffer} */ (
            ArrayBuffer.isView(found)
              ? found.buffer.slice(found.byteOffset, found.byteOffset + found.byteLength)
              : found
          ),
        );
    },
    error: (error) => (failed = error),
  });
  try {
    encoder.configure(config);
    let [at, key] = [0, -KEY_EVERY];
    for (const [i, { seconds }] of stills.entries()) {
      going(signal);
      tell(fill(words.film_writing, { i: i + 1, n: stills.length }));
      await paint(i);
      const times = Math.max(1, Math.ceil(seconds / EVERY));
      for (let k = 0; k < times; k++) {
        const keyFrame = at - key >= KEY_EVERY;
        if (keyFrame) key = at;
        const frame = new VideoFrame(canvas, {
          timestamp: Math.round(at * 1e6),
          duration: Math.round((seconds / times) * 1e6),
        });
        encoder.encode(frame, { keyFrame });
        frame.close();
        at += seconds / times;
      }
      while (encoder.encodeQueueSize > 4 && !failed) await breath();
      if (failed) throw failed;
      fits(size);
      await breath();
    }
    await encoder.flush();
    if (failed) throw failed;
    fits(size);
    const track = { codec: name, width: WIDTH, height: HEIGHT, ms: at * 1000, chunks, description };
    const file = kind === "webm" ? webm(track, film) : mp4(track, film);
    return new Blob([file], { type: `video/${kind}` });
  } finally {
    if (encoder.state !== "closed") encoder.close();
  }
}

// Where nothing else encodes: as the browser records a canvas, as long as it plays
/** @param {Reel} reel @param {How} how @param {string} type */
async function recorded({ canvas, stills, paint }, { signal, tell }, type) {
  const stream = canvas.captureStream(0);
  const [track] = /** @type {CanvasCaptureMediaStreamTrack[]} */ (stream.getVideoTracks());
  const recorder = new MediaRecorder(stream, { mimeType: type, videoBitsPerSecond: BITRATE });
  /** @type {Blob[]} */
  const parts = [];
  recorder.ondataavailable = ({ data }) => parts.push(data);
  const ended = new Promise((done) => (recorder.onstop = () => done(null)));
  try {
    await paint(0);
    recorder.start(1000);
    for (const [i, { seconds }] of stills.entries()) {
      going(signal);
      tell(fill(words.film_recording, { i: i + 1, n: stills.length }));
      const until = performance.now() + 1000 * seconds;
      if (i) await paint(i);
      do {
        track.requestFrame();
        const left = Math.min(1000 * EVERY, until - performance.now());
        await new Promise((done) => setTimeout(done, Math.max(0, left)));
        going(signal);
      } while (performance.now() < until - 5);
      fits(parts.reduce((sum, part) => sum + part.size, 0));
    }
    track.requestFrame();
  } finally {
    if (recorder.state !== "inactive") recorder.stop();
    await ended;
    track.stop();
  }
  return new Blob(parts, { type: type.split(";")[0] });
}
