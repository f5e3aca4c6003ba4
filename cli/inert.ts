/**
 * Text that a stranger wrote, made harmless for a terminal: control characters become their pictures (ESC is ␛), those
 * that reorder, hide or break text become U+FFFD. A line break is kept only where `lines` says that there may be several.
 */
export function inert(text: string, options: { lines?: boolean } = {}): string {
  return text.replace(unsafe, (character) => {
    const code = character.codePointAt(0) ?? 0
    if (code === 0x0a) return options.lines ? '\n' : ' '
    if (code === 0x09) return ' '
    if (code < 0x20) return String.fromCodePoint(0x2400 + code)
    return code === 0x7f ? '\u2421' : '\uFFFD'
  })
}

/** JSON says the same with escapes, so that printing it on a terminal does nothing either. */
export function inertJsonText(value: unknown, space?: number): string {
  return JSON.stringify(value, null, space).replace(unsafeInJson, (character) =>
    [...Array(character.length).keys()]
      .map((index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`)
      .join(''),
  )
}

// C0, DEL and C1; marks, embeddings, overrides and isolates of direction; zero widths; line separators; tags.
const rest =
  '\\u007f-\\u009f\\u061c\\u180e\\u200b-\\u200f\\u2028-\\u202e\\u2060-\\u206f\\ufeff\\u{e0000}-\\u{e007f}\\ud800-\\udfff'
const unsafe = new RegExp(`[\\u0000-\\u001f${rest}]`, 'gu')
// Without C0, which JSON.stringify escapes itself and of which its own line breaks are left.
const unsafeInJson = new RegExp(`[${rest}]`, 'gu')
