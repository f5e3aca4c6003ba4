/**
 * What a person would not see as what it is, as a pattern for the flag `u`: controls but C0, what reorders, joins or fills, what a
 * screen leaves out, lone surrogates, and more marks on one letter than any script puts there, which are painted over what stands
 * around. What becomes of C0, among it line breaks, is for the place that shows the text.
 */
const group =
  '\\u007f-\\u009f\\u2028\\u2029\\u2800\\ud800-\\udfff\\u{13430}-\\u{1343f}\\p{Cf}\\p{Default_Ignorable_Code_Point}'

/** One such character, or one of C0 that is asked for. */
export function hiddenCharacter(controls: string): string {
  return `[${controls}${group}]|(?<=\\p{M}{8})\\p{M}`
}

/** As a page and a card write it. */
export function nameOfCharacter(character: string): string {
  return `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`
}

const hidden = new RegExp(hiddenCharacter(''), 'gu')

/**
 * A stranger's text for a receiver's screen: nothing in it moves a terminal, turns the reading direction or hides; at most
 * `maxChars` code points.
 */
export function inertText(text: string, maxChars: number): string {
  const plain = text
    .slice(0, maxChars * 4)
    .toWellFormed()
    .replace(/[\p{Cc}\p{Zl}\p{Zp}]+/gu, ' ')
    .replace(hidden, '\uFFFD')
    .trim()
  const chars = [...plain]
  const isCut = chars.length > maxChars || text.length > maxChars * 4
  return isCut ? `${chars.slice(0, maxChars - 1).join('')}…` : plain
}
