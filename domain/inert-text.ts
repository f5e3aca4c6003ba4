/**
 * A pattern (flag `u`) of characters that hide or change displayed text: control characters outside
 * C0, marks that reorder, join or fill, invisible characters, lone surrogates, and stacks of
 * combining marks that cover the text around them. Each caller handles the control characters of
 * C0, which include line breaks, itself.
 */
const group =
  '\\u007f-\\u009f\\u2028\\u2029\\u2800\\ud800-\\udfff\\u{13430}-\\u{1343f}\\p{Cf}\\p{Default_Ignorable_Code_Point}'

/** Returns a pattern that matches a hidden character, or one of the C0 characters `controls`. */
export function hiddenCharacter(controls: string): string {
  return `[${controls}${group}]|(?<=\\p{M}{8})\\p{M}`
}

/** Names a character for page and card. */
export function nameOfCharacter(character: string): string {
  return `\\u${(character.codePointAt(0) ?? 0).toString(16).padStart(4, '0')}`
}

const hidden = new RegExp(hiddenCharacter(''), 'gu')

/**
 * Makes untrusted text safe to show: without terminal controls, changes of reading direction and
 * hidden characters, and with at most `maxChars` code points. The result is one line, unless
 * `lines` keeps line breaks.
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
 * Beginnings of control tokens of chat templates, which a server may read as the end of a turn or
 * as another role. Model families have different tokens, but all of them begin with `<` and no
 * blank, so no list is needed.
 */
const angled = /<(?=[\p{L}/|｜_])/gu
/** Control tokens of chat templates in square brackets. */
const bracketed =
  /\[(?=\/?(?:INST|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|SYSTEM_PROMPT|MODEL_SETTINGS|THINK|ARGS|CALL_ID|IMG|IMG_BREAK|IMG_END|AUDIO|BEGIN_AUDIO|PREFIX|MIDDLE|SUFFIX|gMASK|sMASK)\]|\|[\w ]{1,40}\|\]|e~\[)|\](?=~b\]|<\])/gi

/**
 * Serializes a value as JSON that can neither end its fence nor imitate another role. A JSON parser
 * reads the original value.
 */
export function inertJson(value: unknown): string {
  return JSON.stringify(value)
    .replaceAll('<', '\\u003c')
    .replaceAll('>', '\\u003e')
    .replace(bracketed, (bracket) => (bracket === '[' ? '\\u005b' : '\\u005d'))
}

/**
 * Replaces characters of chat templates' control tokens by look-alikes, so that a text cannot
 * imitate another role.
 */
export function withoutTemplateTokens(text: string): string {
  return text.replace(angled, '‹').replace(bracketed, (bracket) => (bracket === '[' ? '⁅' : '⁆'))
}

/** Restores replaced characters, so that a quote can be compared with its log row. */
export function withoutFolding(text: string): string {
  return text.replace(/[‹›⁅⁆]/g, (sign) => ({ '‹': '<', '›': '>', '⁅': '[', '⁆': ']' })[sign] as string)
}

/**
 * Encloses untrusted text between marks with a name. The text can neither end the fence nor imitate
 * another role.
 */
export function fence(name: string, text: string): string {
  const inert = withoutTemplateTokens(text.replaceAll('<<<', '‹‹‹').replaceAll('>>>', '›››'))
  return `<<<DATA ${name}\n${inert}\nDATA>>>`
}
