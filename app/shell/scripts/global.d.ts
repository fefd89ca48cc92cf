// What the page's own script offers to the rooms.
interface Settings {
  names: string[]; // of what an address says of the page whatever the room
  get(name: string): string | null;
  set(name: string, value: string | null): void;
  watch(hear: (settings: Record<string, string | null>) => void): () => void;
}
interface Window {
  headlight: {
    settings: Settings;
    choose?(address: string): void; // a room: an entry of the history, whose address the server will say whole
  };
}
