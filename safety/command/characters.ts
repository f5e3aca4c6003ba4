/** What an approver cannot see he cannot approve: these characters are refused, wherever they stand. */

type Hidden = { what: string; from: number; to: number }

const hidden: readonly Hidden[] = [
  { what: 'a NUL or control character', from: 0x00, to: 0x08 },
  { what: 'a control character', from: 0x0b, to: 0x1f },
  { what: 'a control character', from: 0x7f, to: 0x9f },
  { what: 'a soft hyphen', from: 0xad, to: 0xad },
  { what: 'an invisible joiner', from: 0x034f, to: 0x034f },
  { what: 'a direction mark', from: 0x061c, to: 0x061c },
  { what: 'an invisible filler', from: 0x115f, to: 0x1160 },
  { what: 'an invisible vowel', from: 0x17b4, to: 0x17b5 },
  { what: 'a variation selector', from: 0x180b, to: 0x180f },
  { what: 'a zero-width or direction character', from: 0x200b, to: 0x200f },
  { what: 'a line separator or direction character', from: 0x2028, to: 0x202e },
  { what: 'an invisible operator or direction character', from: 0x2060, to: 0x206f },
  { what: 'an invisible filler', from: 0x3164, to: 0x3164 },
  { what: 'half a character', from: 0xd800, to: 0xdfff },
  { what: 'a variation selector', from: 0xfe00, to: 0xfe0f },
  { what: 'a byte order mark', from: 0xfeff, to: 0xfeff },
  { what: 'an invisible filler', from: 0xffa0, to: 0xffa0 },
  { what: 'a non-character', from: 0xfff9, to: 0xffff },
  { what: 'a musical control', from: 0x1d173, to: 0x1d17a },
  { what: 'a tag character', from: 0xe0000, to: 0xe0fff },
]

/** The first character of the text that nobody can see, as `U+202E (…)`; null when all can be seen. */
export function hiddenCharacter(text: string): string | null {
  // Nearly every command is printable ASCII: one pass of the regular expression engine, and no table.
  if (!/[^\t\n\x20-\x7e]/.test(text)) return null
  for (const character of text) {
    const code = character.codePointAt(0)!
    if (code === 0x09 || code === 0x0a) continue
    const found = hidden.find(({ from, to }) => code >= from && code <= to)
    if (found) return `U+${code.toString(16).toUpperCase().padStart(4, '0')} (${found.what})`
  }
  return null
}

/** The first character outside ASCII. In a command word it is a look-alike or a blank of another width: `ｒm`, `git　status`. */
export function foreignCharacter(word: string): string | null {
  if (!/[^\x20-\x7e]/.test(word)) return null
  const found = /\P{ASCII}/u.exec(word)
  return found ? `U+${found[0].codePointAt(0)!.toString(16).toUpperCase().padStart(4, '0')}` : null
}
