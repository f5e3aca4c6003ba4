import { lstat, mkdir } from 'node:fs/promises'
import { join } from 'node:path'
import type { CapabilityContext, Outcome } from './capability.ts'
import { diffOf, shownFiles, type Trees } from './checkout.ts'
import { CapabilityError } from './outcome.ts'
import { whyNotDone } from './programs.ts'
import { type Copy, runChecks } from './rehearsal.ts'
import { changed, inCheckout } from './repository.ts'

/** A check may need what lies beside a file; a tree of more than this is not copied for it. */
const laidBytes = 64 * 1024 * 1024

type Env = Record<string, string>

/** Where a commit is tried: an index and objects beside those of the checkout, of which nothing is written. */
export async function environmentIn(directory: string, path: string): Promise<Env> {
  const objects = join(directory, 'objects')
  await mkdir(objects)
  return {
    GIT_INDEX_FILE: join(directory, 'index'),
    GIT_OBJECT_DIRECTORY: objects,
    GIT_ALTERNATE_OBJECT_DIRECTORIES: join(path, '.git', 'objects'),
  }
}

/** Runs git in a checkout and answers what it printed; throws where it did not do it. */
export async function output(path: string, words: readonly string[], context: CapabilityContext, env: Env = {}) {
  const ran = await inCheckout(path, words, context, { env })
  const why = whyNotDone(`git ${words[0]}`, ran)
  if (why && !why.ok) throw new CapabilityError(why.code, why.message)
  return ran.stdout
}

/** What a commit of this tree would change, with its files laid out for the checks: `{ diff, checks, would_change, path, files }`. */
export async function reportTree(
  trees: Trees,
  { directory, env }: { directory: string; env: Env },
  context: CapabilityContext,
): Promise<Outcome> {
  const { path, head } = trees
  const files = await changed(path, head, trees.tree, context, { env })
  const { diff, truncated } = await diffOf(trees, files, context, env)

  const laid = join(directory, 'tree')
  await mkdir(laid)
  if (files.length > 0 && context.manifest.checks.length > 0) {
    const what = await whatToLay(trees, context, env)
    if (what.length > 0) await output(path, ['checkout-index', `--prefix=${laid}/`, ...what], context, env)
  }
  const copies = await Promise.all(files.map((name) => copyOf(path, laid, name)))
  const checks = await runChecks(
    copies.flatMap((copy) => copy ?? []),
    laid,
    context,
  )
  const result = { diff, checks, would_change: files.length > 0, path, files }
  return { ok: true, result, truncated }
}

/** All files where they are few and small, else those that the commit changes and leaves there. */
async function whatToLay({ path, head, tree }: Trees, context: CapabilityContext, env: Env): Promise<string[]> {
  const { stdout, exitCode } = await inCheckout(path, ['ls-tree', '-r', '-l', tree], context, { env })
  // "100644 blob <id> <size>\t<name>"
  const sizes = stdout.split('\n').map((line) => Number(/^\d+ blob \w+ +(\d+)\t/.exec(line)?.[1] ?? 0))
  if (exitCode === 0 && sizes.reduce((sum, size) => sum + size, 0) <= laidBytes) return ['--all']
  const left = await changed(path, head, tree, context, { env, removed: false })
  return left.length === 0 ? [] : ['--', ...left.slice(0, shownFiles)]
}

/**
 * Its copy, where the commit leaves a regular file: what it removes cannot be checked, and a link
 * would lead out of the copy.
 */
async function copyOf(path: string, laid: string, name: string): Promise<Copy | null> {
  const copy = join(laid, name)
  const found = await lstat(copy).catch(() => null)
  return found?.isFile() ? { path: join(path, name), copy } : null
}
