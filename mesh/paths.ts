import type { Word } from '../safety/command/parse.ts'
import { pathFinding } from '../safety/command/paths.ts'

const wordOf = (text: string): Word => ({ text, literal: true, quoting: 'bare', pattern: null })

/**
 * May this path be read without approval? By the rules that commands are judged by: null: yes;
 * `secret`: only with approval; `endless`: never. Device and control plane use the same rules.
 */
export function heldAt(path: string): 'secret' | 'endless' | null {
  const finding = pathFinding(wordOf(path), [], 'prints')
  return finding === null || finding === 'endless' ? finding : 'secret'
}

/** A root as a manifest names it, without redundant slashes. */
export function plainRoot(root: string): string {
  return `/${root.split('/').filter(Boolean).join('/')}`
}

/** Is this path the directory itself or below it? Both are plain and absolute. */
export function isInside(path: string, directory: string): boolean {
  return path === directory || path.startsWith(directory === '/' ? '/' : `${directory}/`)
}
