/** Words that an on-call engineer does not say: archaic, folksy, or a private name for something that has one. */
export const folksyWords =
  /\b(whoever|nobody's|somebody's|anew|afresh|heed(s|ed)?|mend(s|ed|ing)?|errands?|of its own|of their own|it is said|is told|are told|in vain|for want of|(?<!there )is none|bore|dear|hither|thereby|whence|lest|forthwith)\b/i

/** Documents that are not in the repository. */
export const foreignReferences = /\b(seeds? \d{3}|design (section|chapter|\d)|first design|founder|session \d)\b/i

/** Comment lines of a file that match, each with its place. Lines are looked at one by one: a phrase over two lines is missed. */
export function findWords(words: RegExp, { path, text }: { path: string; text: string }): string[] {
  return text.split('\n').flatMap((line, at) => {
    const comment = /^\s*(?:\/\/|\/?\*)(.*)|(?:^|\s)\/\/\s(.*)/.exec(line)
    return comment && words.test(comment[1] ?? comment[2] ?? '') ? [`${path}:${at + 1} ${line.trim()}`] : []
  })
}
