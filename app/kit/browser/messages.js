// Messages from the server: [u32 length][JSON header][numbers].

/** @param {Uint8Array} bytes @returns {[header: any, body: ArrayBuffer]} */
export function unpack(bytes) {
  const length = new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const at = bytes.byteOffset + 4 + length;
  return [header, /** @type {ArrayBuffer} */ (bytes.buffer).slice(at, bytes.byteOffset + bytes.byteLength)]; // a copy, so that numbers are aligned
}

// An answer that is JSON alone
/** @param {Uint8Array} bytes @returns {any} */
export const json = (bytes) => JSON.parse(new TextDecoder().decode(bytes));

// A message as unpack() reads it: the JSON is filled up, so that numbers are aligned
/** @param {object} header @param {Uint8Array | ArrayBuffer} body @returns {Uint8Array<ArrayBuffer>} */
export function pack(header, body) {
  const json = new TextEncoder().encode(JSON.stringify(header));
  const length = Math.ceil(json.length / 4) * 4;
  const out = new Uint8Array(4 + length + body.byteLength).fill(0x20, 4, 4 + length);
  new DataView(out.buffer).setUint32(0, length, true);
  out.set(json, 4);
  out.set(new Uint8Array(body), 4 + length);
  return out;
}

/** @param {Uint8Array<ArrayBuffer>} bytes @returns {Promise<string>} */
export async function base64(bytes) {
  const url = await new Promise((done) => {
    const reader = new FileReader();
    reader.onload = () => done(String(reader.result));
    reader.readAsDataURL(new Blob([bytes]));
  });
  return url.slice(url.indexOf(",") + 1);
}

// What stands in a stream: messages of bytes, each after its length as a u32.
/** @param {ReadableStream<Uint8Array>} stream */
export async function* messages(stream) {
  const reader = stream.getReader();
  let rest = new Uint8Array(0);
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return;
    const all = new Uint8Array(rest.length + value.length);
    all.set(rest);
    all.set(value, rest.length);
    rest = all;
    while (rest.length >= 4) {
      const end = 4 + new DataView(rest.buffer, rest.byteOffset, 4).getUint32(0, true);
      if (rest.length < end) break;
      yield rest.slice(4, end);
      rest = rest.subarray(end);
    }
  }
}
