import type { Word } from '../safety/command/parse.ts'
import { pathFinding } from '../safety/command/paths.ts'

const wordOf = (text: string): Word => ({ text, literal: true, quoting: 'bare', pattern: null })

/**
 * Is what lies there shown unasked? By the rules that commands are judged by: `secret` only with a person's leave, `endless` never, null
 * without a question. Device and control plane ask the same.
 */
export function heldAt(path: string): 'secret' | 'endless' | null {
  const finding = pathFinding(wordOf(path), [], 'prints')
  return finding === null || finding === 'endless' ? finding : 'secret'
}

/** A root as a manifest names it, without the slashes that say nothing. */
export function plainRoot(root: string): string {
  return `/${root.split('/').filter(Boolean).join('/')}`
}

/** Is this path the directory itself or below it? Both are plain and absolute. */
export function isInside(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory === '/' ? '/' : `${directory}/`)
}
