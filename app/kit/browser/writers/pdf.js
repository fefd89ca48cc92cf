// A page of PDF 1.7: a drawing in its own operators, with text that can be read and copied, and what it says of itself: title, description and
// code in the file, and the description once more where a screen reader finds it (a figure of a tagged page, with /Alt).

import { meanings } from "./fonts.js";

/** @typedef {import("../types.js").About} About */
/** @typedef {[a: number, b: number, c: number, d: number, e: number, f: number]} Matrix */
/** A sign that no font of a reader has, as boxes of its own: `wide` is how far it goes, all in units, UNITS for the size. @typedef {{text: string, wide: number, boxes: [x: number, y: number, w: number, h: number][]}} Sign */

const POINTS = 0.75; // of a pixel of CSS
const IN_A_FONT = 255; // signs
const UNITS = 200; // of a sign, for the size of its font

/** @param {number} x */
export const num = (x) =>
  String(Math.round(x * 1000) / 1000)
    .replace("-0.", "-.")
    .replace(/^0\./, ".");
/** @param {...number} all */
const nums = (...all) => all.map(num).join(" ");

/** A text for a reader, in any script. @param {string} text */
export const said = (text) =>
  `<FEFF${Array.from({ length: text.length }, (_, i) => text.charCodeAt(i).toString(16).padStart(4, "0")).join("")}>`;

/** @param {string} text */
const escaped = (text) =>
  text.replace(/[&<>]/g, (c) => ({ "&": "&amp;", "<": "&lt;", ">": "&gt;" })[/** @type {"&"} */ (c)]);

/** @param {Uint8Array} bytes */
async function deflated(bytes) {
  const stream = new Blob([/** @type {Uint8Array<ArrayBuffer>} */ (bytes)])
    .stream()
    .pipeThrough(new CompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

export class Page {
  /** @type {string[]} */
  out = [];
  /** @type {Map<string, string>} The page's own names, by the text that made each: it is met once */
  names = new Map();
  /** @type {Record<"Font" | "ExtGState" | "Shading" | "Pattern" | "XObject", Map<string, number>>} */
  resources = { Font: new Map(), ExtGState: new Map(), Shading: new Map(), Pattern: new Map(), XObject: new Map() };
  /** @type {(string | {dict: string, bytes: Uint8Array})[]} Objects from number 1 on */
  objects = [];
  /** @type {{name: string, signs: Sign[], at: number}[]} */
  drawn = [];
  /** @type {Map<string, [name: string, code: number]>} */
  known = new Map();

  /** @param {number} width @param {number} height in pixels */
  constructor(width, height) {
    this.width = width;
    this.height = height;
    this.base = /** @type {Matrix} */ ([POINTS, 0, 0, -POINTS, 0, height * POINTS]);
  }

  /** @param {string | {dict: string, bytes: Uint8Array}} object */
  add(object) {
    return this.objects.push(object);
  }

  /** @param {string} operators */
  put(operators) {
    this.out.push(operators);
  }

  /** The name of a resource, made once. @param {"Font" | "ExtGState" | "Shading" | "Pattern" | "XObject"} kind @param {string} of @param {() => number} make */
  named(kind, of, make) {
    const key = `${kind} ${of}`;
    let name = this.names.get(key);
    if (!name) {
      name = `${kind[0]}${this.resources[kind].size}`;
      this.names.set(key, name);
      this.resources[kind].set(name, make());
    }
    return name;
  }

  /** @param {number} fill @param {number} stroke */
  alpha(fill, stroke) {
    if (fill >= 1 && stroke >= 1) return "";
    const dict = `<</ca ${num(fill)}/CA ${num(stroke)}>>`;
    return `/${this.named("ExtGState", dict, () => this.add(dict))} gs`;
  }

  /** One of the fonts that every reader has. @param {import("./fonts.js").Font} font */
  font(font) {
    return this.named("Font", font, () => {
      if (font !== "Symbol" && font !== "ZapfDingbats")
        return this.add(`<</Type/Font/Subtype/Type1/BaseFont/${font}/Encoding/WinAnsiEncoding>>`);
      const unicode = this.unicode(meanings(font));
      return this.add(`<</Type/Font/Subtype/Type1/BaseFont/${font}/ToUnicode ${unicode} 0 R>>`);
    });
  }

  /** The meaning of codes, for those who copy the text. @param {[code: number, text: string][]} codes */
  unicode(codes) {
    /** @type {string[]} */
    const blocks = [];
    for (let i = 0; i < codes.length; i += 100) {
      const part = codes.slice(i, i + 100);
      const lines = part.map(([code, text]) => `<${code.toString(16).padStart(2, "0")}> <${said(text).slice(5, -1)}>`);
      blocks.push(`${part.length} beginbfchar\n${lines.join("\n")}\nendbfchar`);
    }
    const text = `/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /Signs def /CMapType 2 def
1 begincodespacerange <00> <FF> endcodespacerange
${blocks.join("\n")}
endcmap CMapName currentdict /CMap defineresource pop end end`;
    return this.add({ dict: "", bytes: new TextEncoder().encode(text) });
  }

  /** A sign that is drawn, as a letter of a font of its own. @param {string} key @param {() => Sign} make @returns {[name: string, code: number, wide: number]} wide at size 1 */
  sign(key, make) {
    const known = this.known.get(key);
    if (known) {
      const font = /** @type {{signs: Sign[]}} */ (this.drawn.find(({ name }) => name === known[0]));
      return [...known, font.signs[known[1]].wide / UNITS];
    }
    let font = this.drawn.at(-1);
    if (!font || font.signs.length >= IN_A_FONT) {
      const name = this.named("Font", `drawn ${this.drawn.length}`, () => this.add(""));
      this.drawn.push((font = { name, signs: [], at: /** @type {number} */ (this.resources.Font.get(name)) }));
    }
    const sign = make();
    font.signs.push(sign);
    this.known.set(key, [font.name, font.signs.length - 1]);
    return [font.name, font.signs.length - 1, sign.wide / UNITS];
  }

  /** From one point to another in these colours. @param {[x0: number, y0: number, x1: number, y1: number]} along @param {[offset: number, colour: number[]][]} stops */
  shading(along, stops) {
    const between = stops
      .slice(1)
      .map(([, colour], i) => `<</FunctionType 2/Domain[0 1]/C0[${nums(...stops[i][1])}]/C1[${nums(...colour)}]/N 1>>`);
    const bounds = nums(...stops.slice(1, -1).map(([offset]) => offset));
    const encode = between.map(() => "0 1").join(" ");
    const [from, to] = [stops[0][0], /** @type {[number, number[]]} */ (stops.at(-1))[0]];
    const blend = `<</FunctionType 3/Domain[${nums(from, to)}]/Functions[${between.join("")}]/Bounds[${bounds}]/Encode[${encode}]>>`;
    const dict = `<</ShadingType 2/ColorSpace/DeviceRGB/Coords[${nums(...along)}]/Domain[${nums(from, to)}]/Extend[true true]/Function ${blend}>>`;
    return this.named("Shading", dict, () => this.add(dict));
  }

  /** A tile that is repeated. @param {Matrix} matrix from the tile to the page @param {number} width @param {number} height @param {string} operators */
  tiles(matrix, width, height, operators) {
    const box = nums(0, 0, width, height);
    const dict = `/Type/Pattern/PatternType 1/PaintType 1/TilingType 1/BBox[${box}]/XStep ${num(width)}/YStep ${num(height)}/Resources<<>>/Matrix[${nums(...matrix)}]`;
    return this.named("Pattern", dict + operators, () =>
      this.add({ dict, bytes: new TextEncoder().encode(operators) }),
    );
  }

  /** Pixels, for what no shapes can draw. @param {{width: number, height: number, data: Uint8ClampedArray}} image */
  image({ width, height, data }) {
    const [rgb, alpha] = [new Uint8Array(width * height * 3), new Uint8Array(width * height)];
    for (let i = 0; i < alpha.length; i++) {
      rgb.set(data.subarray(4 * i, 4 * i + 3), 3 * i);
      alpha[i] = data[4 * i + 3];
    }
    const of = `/Type/XObject/Subtype/Image/Width ${width}/Height ${height}/BitsPerComponent 8/Interpolate false`;
    const mask = this.add({ dict: `${of}/ColorSpace/DeviceGray`, bytes: alpha });
    const number = this.add({ dict: `${of}/ColorSpace/DeviceRGB/SMask ${mask} 0 R`, bytes: rgb });
    return this.named("XObject", String(number), () => number);
  }

  /** The fonts of drawn signs, when all are known. */
  finish() {
    for (const { signs, at } of this.drawn) {
      const procs = signs.map(({ wide, boxes }) => {
        const rects = boxes.map((box) => `${nums(...box)} re`).join("\n");
        const text = `${num(wide)} 0 ${nums(-UNITS, -UNITS, wide + UNITS, 2 * UNITS)} d1\n${rects}${rects ? " f" : ""}`;
        return this.add({ dict: "", bytes: new TextEncoder().encode(text) });
      });
      const unicode = this.unicode(signs.map(({ text }, i) => [i, text]));
      const names = signs.map((_, i) => `/s${i}`).join("");
      const all = procs.map((number, i) => `/s${i} ${number} 0 R`).join("");
      const box = nums(-UNITS, -UNITS, Math.max(...signs.map(({ wide }) => wide)) + UNITS, 2 * UNITS);
      this.objects[at - 1] =
        `<</Type/Font/Subtype/Type3/FontBBox[${box}]/FontMatrix[${nums(1 / UNITS, 0, 0, 1 / UNITS, 0, 0)}]/Resources<<>>` +
        `/CharProcs<<${all}>>/Encoding<</Type/Encoding/Differences[0${names}]>>/FirstChar 0/LastChar ${signs.length - 1}` +
        `/Widths[${nums(...signs.map(({ wide }) => wide))}]/ToUnicode ${unicode} 0 R>>`;
    }
  }

  /** The file. @param {About} about @param {string} language @returns {Promise<Uint8Array>} */
  async bytes(about, language) {
    this.finish();
    const { width, height, resources } = this;
    const size = [0, 0, width * POINTS, height * POINTS];
    const operators = `/Figure <</MCID 0>> BDC\nq ${nums(...this.base)} cm\n${this.out.join("\n")}\nQ\nEMC`;
    const content = this.add({ dict: "", bytes: new TextEncoder().encode(operators) });
    const count = this.objects.length;
    const [page, pages, figure, section, tree, metadata, info, catalog] = Array.from(
      { length: 8 },
      (_, i) => count + 1 + i,
    );
    const lists = Object.entries(resources)
      .filter(([, all]) => all.size)
      .map(([kind, all]) => `/${kind}<<${[...all].map(([name, number]) => `/${name} ${number} 0 R`).join("")}>>`);
    this.add(
      `<</Type/Page/Parent ${pages} 0 R/MediaBox[${nums(...size)}]/Resources<<${lists.join("")}>>/Contents ${content} 0 R/StructParents 0/Tabs/S>>`,
    );
    this.add(`<</Type/Pages/Kids[${page} 0 R]/Count 1>>`);
    const alt = said([about.alt, about.caption].filter(Boolean).join(" "));
    this.add(
      `<</Type/StructElem/S/Figure/P ${section} 0 R/Pg ${page} 0 R/K 0/T ${said(about.title)}/Alt ${alt}/A<</O/Layout/Placement/Block/BBox[${nums(...size)}]>>>>`,
    );
    this.add(`<</Type/StructElem/S/Document/P ${tree} 0 R/K[${figure} 0 R]>>`);
    this.add(`<</Type/StructTreeRoot/K[${section} 0 R]/ParentTree<</Nums[0[${figure} 0 R]]>>/ParentTreeNextKey 1>>`);
    this.add({ dict: "/Type/Metadata/Subtype/XML", bytes: new TextEncoder().encode(xmp(about, language)) });
    this.add(
      `<</Title ${said(about.title)}/Subject ${said(about.alt)}/Keywords ${said(about.caption)}/SourceCode ${said(about.snippet)}/Creator(Headlight)/Producer(Headlight)>>`,
    );
    this.add(
      `<</Type/Catalog/Pages ${pages} 0 R/StructTreeRoot ${tree} 0 R/MarkInfo<</Marked true>>/Metadata ${metadata} 0 R/Lang(${language})/ViewerPreferences<</DisplayDocTitle true>>>>`,
    );
    return written(this.objects, catalog, info);
  }
}

/** @param {About} about @param {string} language */
function xmp(about, language) {
  const alt = (/** @type {string} */ name, /** @type {string} */ text) =>
    `<dc:${name}><rdf:Alt><rdf:li xml:lang="x-default">${escaped(text)}</rdf:li></rdf:Alt></dc:${name}>`;
  return `<?xpacket begin="\ufeff" id="W5M0MpCehiHzreSzNTczkc9d"?>
<x:xmpmeta xmlns:x="adobe:ns:meta/"><rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#">
<rdf:Description rdf:about="" xmlns:dc="http://purl.org/dc/elements/1.1/" xmlns:xmp="http://ns.adobe.com/xap/1.0/" xmlns:headlight="urn:headlight:export">
<dc:format>application/pdf</dc:format><dc:language><rdf:Bag><rdf:li>${language}</rdf:li></rdf:Bag></dc:language>
${alt("title", about.title)}
${alt("description", about.alt)}
<xmp:CreatorTool>Headlight</xmp:CreatorTool>
<headlight:caption>${escaped(about.caption)}</headlight:caption>
<headlight:snippet>${escaped(about.snippet)}</headlight:snippet>
</rdf:Description></rdf:RDF></x:xmpmeta>
<?xpacket end="r"?>`;
}

/** Objects one after the other, and a table of where each begins. @param {(string | {dict: string, bytes: Uint8Array})[]} objects @param {number} root @param {number} info */
async function written(objects, root, info) {
  /** @type {Uint8Array[]} */
  const parts = [];
  let size = 0;
  const put = (/** @type {string | Uint8Array} */ part) => {
    const bytes = typeof part === "string" ? new TextEncoder().encode(part) : part;
    parts.push(bytes);
    size += bytes.length;
  };
  put("%PDF-1.7\n");
  put(Uint8Array.of(0x25, 0xe2, 0xe3, 0xcf, 0xd3, 0x0a)); // it is no text
  /** @type {number[]} */
  const begins = [];
  for (const [i, object] of objects.entries()) {
    begins.push(size);
    put(`${i + 1} 0 obj\n`);
    if (typeof object === "string") put(object);
    else {
      const isPlain = object.dict.includes("/Metadata"); // which programs look for that read no PDF
      const bytes = isPlain ? object.bytes : await deflated(object.bytes);
      put(`<<${object.dict}/Length ${bytes.length}${isPlain ? "" : "/Filter/FlateDecode"}>>\nstream\n`);
      put(bytes);
      put("\nendstream");
    }
    put("\nendobj\n");
  }
  const table = begins.map((at) => `${String(at).padStart(10, "0")} 00000 n \n`).join("");
  put(
    `xref\n0 ${objects.length + 1}\n0000000000 65535 f \n${table}trailer\n<</Size ${objects.length + 1}/Root ${root} 0 R/Info ${info} 0 R>>\nstartxref\n${size}\n%%EOF\n`,
  );
  const file = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    file.set(part, at);
    at += part.length;
  }
  return file;
}
