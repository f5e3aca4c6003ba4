import type { Simple, Word } from './tree.ts'

/**
 * Judges `kubectl get … -o json | jq '.items[].status.phase'` by the paths that the filter prints,
 * like the same output by kubectl's own paths. Needs approval if one of these paths does.
 */

/**
 * Returns the command with the filter's paths in place of `json`, if jq prints nothing else;
 * otherwise the command itself.
 */
export function asksForPaths(simple: Simple, next: Simple | undefined): Simple {
  const [program, verb] = [simple.words[0]?.text, simple.words.some(({ text }) => text === 'get')]
  if ((program !== 'kubectl' && program !== 'oc') || !verb || next?.words[0]?.text !== 'jq') return simple
  // Keeps the command if it writes to another stream, which is shown whole.
  if (simple.redirections.some(({ source }) => !/^2> ?(?:\/dev\/null|&1)$/.test(source))) return simple
  const paths = pathsOfFilter(next.words.slice(1))
  if (paths === null) return simple
  const output = `jsonpath=${paths.map((path) => `{${path}}`).join('')}`
  const words = simple.words.map((word, at): Word => {
    const before = simple.words[at - 1]?.text
    if (word.text === 'json' && (before === '-o' || before === '--output')) return { ...word, text: output }
    const joined = /^(-o=?|--output=)json$/.exec(word.text)
    return joined ? { ...word, text: `${joined[1]}${output}` } : word
  })
  return { ...simple, words }
}

const plainOptions = /^(?:-[rcMSe]+|--raw-output|--compact-output|--sort-keys|--monochrome-output)$/

/**
 * Returns a jq filter as JSON paths of kubectl; null for anything but paths, choices and counts.
 */
function pathsOfFilter(words: readonly Word[]): string[] | null {
  const operands = words.filter(({ text }) => !plainOptions.test(text))
  const [filter, more] = operands
  if (!filter?.literal || more || filter.text.length > 500) return null
  const steps = splitAt(filter.text, '|')
  if (!steps) return null
  // Accepts a count, which reveals no content.
  const isCount = steps.length > 1 && /^\s*length\s*$/.test(steps.at(-1)!)
  let prefix = ''
  for (const [index, step] of steps.entries()) {
    const text = step.trim()
    if (/^select\(.*\)$/s.test(text) || /^(?:length|unique|sort|sort_by\(\.[\w.]*\))$/.test(text)) continue
    const path = toPath(text)
    if (path !== null) {
      prefix += path
      continue
    }
    // Allows the last steps to be an object of named paths, or several paths.
    const rest = steps
      .slice(index + 1)
      .every((each) => /^\s*(?:length|unique|sort|tostring|@(?:tsv|csv|text)|join\("[\s\w,;:|-]*"\))\s*$/.test(each))
    const said = interpolated(text)
    if (said !== null && rest) return said.map((each) => `${prefix}${each}`)
    const fields = /^\{(.*)\}$/s.exec(text)?.[1] ?? /^(?:\[(.*)\])$/s.exec(text)?.[1] ?? text
    const paths = splitAt(fields, ',')?.map((field) => toPath(field.replace(/^\s*\w+\s*:/, '').trim()))
    if (!rest || !paths?.every((each) => each !== null)) return null
    return paths.map((each) => `${prefix}${each}`)
  }
  if (isCount) return ['.metadata.name']
  return prefix === '' ? null : [prefix]
}

/**
 * Lists the paths in a text that is composed of values: `"\\(.metadata.name) is
 * \\(.status.phase)"`.
 */
function interpolated(text: string): string[] | null {
  if (!/^"(?:[^"\\]|\\[nt"]|\\\([^()"]*\))*"$/.test(text)) return null
  const paths = [...text.matchAll(/\\\(([^()"]*)\)/g)].map(([, path = '']) => toPath(path.trim()))
  return paths.length > 0 && paths.every((path) => path !== null) ? paths : null
}

/** Writes `.items[].metadata.name` in kubectl's form. */
function toPath(text: string): string | null {
  if (!/^(?:\.[A-Za-z][\w-]*(?:\[\d*\])?\??|\.?\[\d*\])+$/.test(text)) return null
  return text.replace(/\?/g, '').replace(/\.\[/g, '[').replace(/\[\]/g, '[*]')
}

/** Splits at a sign outside of brackets and strings; null if brackets do not match. */
function splitAt(text: string, sign: string): string[] | null {
  const parts: string[] = ['']
  let depth = 0
  for (const [token] of text.matchAll(/"(?:[^"\\]|\\.)*"|[\s\S]/g)) {
    if (/^[([{]$/.test(token)) depth += 1
    if (/^[)\]}]$/.test(token)) depth -= 1
    if (depth < 0) return null
    if (token === sign && depth === 0) parts.push('')
    else parts[parts.length - 1] += token
  }
  return depth === 0 ? parts : null
}
