/**
 * Words that a chat template gives a meaning to: a server that renders messages into one text reads them as the end of a turn or the
 * beginning of another role, wherever they stand. Of the families that are in use; `<|` and `<｜` begin those of most.
 */
const angled =
  /<(?=[|｜]|\/?(?:s|bos|eos|pad|unk|mask|sop|eop|think|tool_calls?|tool_response|tools|function_calls?|invoke|(?:start|end)_of_(?:turn|image|role|text)|(?:bos|eos)_token|seed:\w{1,20}|extra_id_\d{1,3}|unused\d{1,3}|fim_\w{1,20}|<sys>|sys>)[ >])/gi
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

/** Fences untrusted text under a name. Whatever it holds, it can neither close the fence nor speak for another role. */
export function fence(name: string, text: string): string {
  const inert = withoutTemplateTokens(text.replaceAll('<<<', '‹‹‹').replaceAll('>>>', '›››'))
  return `<<<DATA ${name}\n${inert}\nDATA>>>`
}
