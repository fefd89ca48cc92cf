// Messages from the server: [u32 length][JSON header][numbers].

/** @param {Uint8Array} bytes @returns {[header: any, body: ArrayBuffer]} */
export function unpack(bytes) {
  const length = new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const at = bytes.byteOffset + 4 + length;
  return [header, /** @type {ArrayBuffer} */ (bytes.buffer).slice(at, bytes.byteOffset + bytes.byteLength)]; // a copy, so that numbers are aligned
}

// What stands in a stream: messages of bytes, each behind its length as a u32.
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
