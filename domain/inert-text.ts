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
 * `maxChars` code points. It is one line, unless `lines` keeps the breaks of a text that is made of lines.
 */
export function inertText(text: string, maxChars: number, { lines = false }: { lines?: boolean } = {}): string {
  const plain = text
    .slice(0, maxChars * 4)
    .toWellFormed()
    .replace(lines ? /\r\n?|[\p{Zl}\p{Zp}]/gu : /[\p{Cc}\p{Zl}\p{Zp}]+/gu, lines ? '\n' : ' ')
    .replace(/[^\P{Cc}\n]+/gu, ' ')
    .replace(hidden, '\uFFFD')
    .trim()
  const chars = [...plain]
  const isCut = chars.length > maxChars || text.length > maxChars * 4
  return isCut ? `${chars.slice(0, maxChars - 1).join('')}…` : plain
}

/**
 * What a chat template gives a meaning to: a server that renders messages into one text reads it as the end of a turn or the beginning of
 * another role, wherever it stands. Every family has its own words, but all begin with `<` and no blank, so no list of them is kept.
 */
const angled = /<(?=[\p{L}/|｜_])/gu
/** Of the families that use brackets these are the words. */
const bracketed =
  /\[(?=\/?(?:INST|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|SYSTEM_PROMPT|MODEL_SETTINGS|THINK|ARGS|CALL_ID|IMG|IMG_BREAK|IMG_END|AUDIO|BEGIN_AUDIO|PREFIX|MIDDLE|SUFFIX|gMASK|sMASK)\]|\|[\w ]{1,40}\|\]|e~\[)|\](?=~b\]|<\])/gi

/** Plain data as JSON that can neither end its fence nor speak for another role: JSON readers see no difference. */
export function inertJson(value: unknown): string {
  return JSON.stringify(value)
    .replaceAll('<', '\\u003c')
    .replaceAll('>', '\\u003e')
    .replace(bracketed, (bracket) => (bracket === '[' ? '\\u005b' : '\\u005d'))
}

/** Text that cannot speak for another role: what a chat template would read is changed to look alike. */
export function withoutTemplateTokens(text: string): string {
  return text.replace(angled, '‹').replace(bracketed, (bracket) => (bracket === '[' ? '⁅' : '⁆'))
}

/** The text as it stood before: what was copied from a fence is compared with its row by this. */
export function withoutFolding(text: string): string {
  return text.replace(/[‹›⁅⁆]/g, (sign) => ({ '‹': '<', '›': '>', '⁅': '[', '⁆': ']' })[sign] as string)
}

/** Fences untrusted text under a name. Whatever it holds, it can neither close the fence nor speak for another role. */
export function fence(name: string, text: string): string {
  const inert = withoutTemplateTokens(text.replaceAll('<<<', '‹‹‹').replaceAll('>>>', '›››'))
  return `<<<DATA ${name}\n${inert}\nDATA>>>`
}
