/** The environment's texts by name, before they are parsed: what is not set is not there. */
export type Given = Record<string, string>
