// What the page's own script offers to the rooms.
interface Settings {
  names: string[]; // of what an address says of the page whatever the room
  get(name: string): string | null;
  set(name: string, value: string | null): void;
  watch(hear: (settings: Record<string, string | null>) => void): () => void;
}
// Hears that something else than the room has written the address: what it says, and said, and whether it is that of another entry.
type HearAddress = (now: URLSearchParams, before: URLSearchParams, isWay: boolean) => void;
// Shows what an address says that the visitor went back to; false where Streamlit is to run its script for it.
type TakeAddress = (now: URLSearchParams, before: URLSearchParams) => boolean;
interface Address {
  read(): URLSearchParams;
  // A choice is a step that Back takes, together with those right before it; what a rule chose is of the step before.
  write(changes: Record<string, string | null>, kind: "choice" | "rule"): void;
  choose(search: string): void; // another room: a step; the caller tells Streamlit
  go(search: string, isReplaced: boolean): void; // as by a link: the address decides all that is on the screen
  watch(hear: HearAddress): () => void;
  take(hear: TakeAddress): () => void;
}
interface Window {
  __streamlit?: { HOST_CONFIG: Record<string, unknown> }; // settings that Streamlit reads at its start
  headlight: {
    settings: Settings;
    address?: Address; // of the application, and of no other page
  };
}
