/**
 * Characters that hide or change what a person sees, as a pattern for the flag `u`: controls but
 * C0, marks that reorder, join or fill, invisible ones, lone surrogates, and more marks on a letter
 * than any script puts there, which cover their surroundings. Each place that shows text decides
 * about C0, with its line breaks.
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
 * A stranger's text for a screen: nothing in it moves a terminal, turns the reading direction or
 * hides; `maxChars` code points at most. One line, unless `lines` keeps its breaks.
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
 * Marks of chat templates: a server that renders messages into one text reads them as the end of a
 * turn or another role, wherever they stand. Each family has its own words, and all begin with `<`
 * and no blank: no list is kept.
 */
const angled = /<(?=[\p{L}/|｜_])/gu
/** The words of families that use brackets. */
const bracketed =
  /\[(?=\/?(?:INST|AVAILABLE_TOOLS|TOOL_CALLS|TOOL_RESULTS|TOOL_CONTENT|SYSTEM_PROMPT|MODEL_SETTINGS|THINK|ARGS|CALL_ID|IMG|IMG_BREAK|IMG_END|AUDIO|BEGIN_AUDIO|PREFIX|MIDDLE|SUFFIX|gMASK|sMASK)\]|\|[\w ]{1,40}\|\]|e~\[)|\](?=~b\]|<\])/gi

/**
 * Plain data as JSON that can neither end its fence nor speak for another role: JSON readers see no
 * difference.
 */
export function inertJson(value: unknown): string {
  return JSON.stringify(value)
    .replaceAll('<', '\\u003c')
    .replaceAll('>', '\\u003e')
    .replace(bracketed, (bracket) => (bracket === '[' ? '\\u005b' : '\\u005d'))
}

/** Text that speaks for no other role: marks of chat templates are replaced by look-alikes. */
export function withoutTemplateTokens(text: string): string {
  return text.replace(angled, '‹').replace(bracketed, (bracket) => (bracket === '[' ? '⁅' : '⁆'))
}

/** The text as it stood before: what was copied from a fence is compared with its row by this. */
export function withoutFolding(text: string): string {
  return text.replace(/[‹›⁅⁆]/g, (sign) => ({ '‹': '<', '›': '>', '⁅': '[', '⁆': ']' })[sign] as string)
}

/** Fences untrusted text under a name. Nothing in it ends the fence or plays another role. */
export function fence(name: string, text: string): string {
  const inert = withoutTemplateTokens(text.replaceAll('<<<', '‹‹‹').replaceAll('>>>', '›››'))
  return `<<<DATA ${name}\n${inert}\nDATA>>>`
}
