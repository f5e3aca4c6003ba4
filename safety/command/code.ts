import type { Word } from './parse.ts'

/** One-liners of script languages: the commands they start, where these stand in plain strings. For the hard list only. */

const interpreters =
  /^(?:python[\d.]*|pypy[\d.]*|perl[\d.]*|ruby[\d.]*|irb|node|nodejs|deno|bun|php[\d.]*|lua[\d.]*|tclsh|expect|[gmn]?awk|original-awk)$/
const evaluates = /^(?:-[A-Za-z]*[cerE]|--eval|--execute|--print|-p|-pe|-ne|eval)$/
const startsPrograms =
  /\b(?:system|popen\w*|Popen|subprocess|spawn\w*|exec\w*|call|check_\w+|getoutput|run|shell_exec|passthru|proc_open|IO\.popen|Open3|qx|io\.popen|os\.execute|fork)\b|`|%x|\|/
const removesTrees = /\b(?:rmtree|remove_tree|rm_rf|rm_r|rmSync|rmdirSync|removedirs|rimraf)\b/

/** Texts that the one-liner may give to a shell. */
export function codeCommands(name: string, words: readonly Word[]): string[] {
  if (!interpreters.test(name)) return []
  const awk = name.endsWith('awk')
  const found: string[] = []
  for (const [index, word] of words.entries()) {
    const code = index > 0 && (awk ? word.text : evaluates.test(words[index - 1]!.text) ? word.text : null)
    if (!code) continue
    const strings = [
      ...code.matchAll(/'((?:[^'\\]|\\.)*)'|"((?:[^"\\]|\\.)*)"|`([^`]*)`|(?:qx|%x)\s*[({[/]([^)}\]/]*)/g),
    ].map((match) => (match[1] ?? match[2] ?? match[3] ?? match[4] ?? '').replace(/\\(.)/g, '$1'))
    if (startsPrograms.test(code)) found.push(...strings, strings.join(' '))
    if (removesTrees.test(code))
      found.push(...strings.filter((text) => /^[~/.]/.test(text)).map((text) => `rm -rf '${text}'`))
  }
  return found
}
