import { hiddenCharacter } from '../../domain/inert-text.ts'

/**
 * Makes untrusted text harmless for a terminal: control characters become their pictures (ESC is
 * ␛), those that reorder, hide or break text become U+FFFD. Keeps line breaks only with `lines`.
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

/**
 * Makes a whole output harmless before it is written, in case a part was not. Keeps the colours of
 * `paint`.
 */
export function inertOutput(text: string): string {
  return text
    .split(paintSequences)
    .map((part, index) => (index % 2 === 1 ? part : part.replace(unsafeButLayout, (character) => inert(character))))
    .join('')
}

/** JSON that is harmless for a terminal: it escapes the characters that `inert` replaces. */
export function inertJsonText(value: unknown, space?: number): string {
  return JSON.stringify(value, null, space).replace(unsafeInJson, (character) =>
    [...Array(character.length).keys()]
      .map((index) => `\\u${character.charCodeAt(index).toString(16).padStart(4, '0')}`)
      .join(''),
  )
}

const unsafe = new RegExp(hiddenCharacter('\\u0000-\\u001f'), 'gu')
const unsafeButLayout = new RegExp(hiddenCharacter('\\u0000-\\u0008\\u000b-\\u001f'), 'gu')
/** The sequences that `paint` writes: weight and colour of letters. None hides a letter. */
// biome-ignore lint/suspicious/noControlCharactersInRegex: this is about such sequences
const paintSequences = /(\u001b\[(?:0|1|2|3|4|22|23|24|3[0-79]|9[0-7])m)/
// Without C0: JSON.stringify escapes it, and its own line breaks must stay.
const unsafeInJson = new RegExp(hiddenCharacter(''), 'gu')

/**
 * Breaks text at spaces to fit the columns, and indents further lines. Words longer than a line
 * stay whole.
 */
export function wrap(text: string, columns: number, indent = ''): string {
  const lines: string[] = []
  let line = ''
  for (const word of text.split(/ +/)) {
    const longer = line === '' ? word : `${line} ${word}`
    if (longer.length > columns && line !== '') {
      lines.push(line)
      line = word
    } else {
      line = longer
    }
  }
  return [...lines, line].join(`\n${indent}`)
}
