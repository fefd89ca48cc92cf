// Messages from the server: [u32 length][JSON header][numbers].

/** @param {Uint8Array} bytes @returns {[header: any, body: ArrayBuffer]} */
export function unpack(bytes) {
  const length = new DataView(bytes.buffer, bytes.byteOffset, 4).getUint32(0, true);
  const header = JSON.parse(new TextDecoder().decode(bytes.subarray(4, 4 + length)));
  const at = bytes.byteOffset + 4 + length;
  return [header, /** @type {ArrayBuffer} */ (bytes.buffer).slice(at, bytes.byteOffset + bytes.byteLength)]; // a copy, so that numbers are aligned
}
