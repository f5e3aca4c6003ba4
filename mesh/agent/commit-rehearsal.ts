import { copyFile, lstat, mkdir, stat, utimes } from 'node:fs/promises'
import { join } from 'node:path'
import type { CapabilityContext, Outcome } from './capability.ts'
import { whyNotDone } from './programs.ts'
import { Refused } from './refused.ts'
import { type Copy, inThrowAway, runChecks, withheld } from './rehearsal.ts'
import { changed, inCheckout } from './repository.ts'
import { isSecret } from './roots.ts'

/** More than this nobody reads on an approval card. */
const shownFiles = 200
/** A check may need what lies beside a file; a tree of more than this is not copied for it. */
const laidBytes = 64 * 1024 * 1024

type Env = Record<string, string>
type Trees = { path: string; head: string; tree: string }

/**
 * Makes the commit that `git.commit` would make, with an index and objects of its own, and lays its files out for the checks:
 * `{ diff, checks, would_change, path, files }`. Nothing of the checkout is written.
 */
export function rehearseCommit(
  { path, head, named }: { path: string; head: string; named: readonly string[] | undefined },
  context: CapabilityContext,
): Promise<Outcome> {
  return inThrowAway(context.state, async (directory) => {
    const env = {
      GIT_INDEX_FILE: join(directory, 'index'),
      GIT_OBJECT_DIRECTORY: join(directory, 'objects'),
      GIT_ALTERNATE_OBJECT_DIRECTORIES: join(path, '.git', 'objects'),
    }
    await mkdir(env.GIT_OBJECT_DIRECTORY)
    const ours = async (...words: string[]): Promise<string> => {
      const ran = await inCheckout(path, words, context, { env })
      const why = whyNotDone(`git ${words[0]}`, ran)
      if (why && !why.ok) throw new Refused(why.code, why.message)
      return ran.stdout
    }
    // As the commit will: named files on top of the last commit, or what has changed on top of what is staged.
    if (named) {
      await ours('read-tree', head)
      await ours('add', '--all', '--', ...named)
    } else {
      await copyIndex(join(path, '.git', 'index'), env.GIT_INDEX_FILE)
      await ours('add', '--update', '--', '.')
    }
    const trees = { path, head, tree: (await ours('write-tree')).trim() }
    const files = await changed(path, head, trees.tree, context, { env })
    const { diff, truncated } = await diffOf(trees, files, context, env)

    const laid = join(directory, 'tree')
    await mkdir(laid)
    if (files.length > 0 && context.manifest.checks.length > 0) {
      const what = await whatToLay(trees, context, env)
      if (what.length > 0) await ours('checkout-index', `--prefix=${laid}/`, ...what)
    }
    const copies = await Promise.all(files.map((name) => copyOf(path, laid, name)))
    const checks = await runChecks(
      copies.flatMap((copy) => copy ?? []),
      laid,
      context,
    )
    const result = { diff, checks, would_change: files.length > 0, path, files }
    return { ok: true, result, truncated }
  })
}

/** With its time: to git a file that is younger than the index may have changed, though its size and time say nothing of it. */
async function copyIndex(from: string, to: string): Promise<void> {
  const { mtimeMs } = await stat(from)
  await copyFile(from, to)
  await utimes(to, new Date(), new Date(Math.floor(mtimeMs)))
}

async function diffOf({ path, head, tree }: Trees, files: readonly string[], context: CapabilityContext, env: Env) {
  const secret = files.filter((name) => isSecret(join(path, name)))
  const open = files.filter((name) => !secret.includes(name))
  const notes = secret.map((name) => `${name}: ${withheld}`)
  if (open.length > shownFiles) notes.push(`${open.length - shownFiles} files more are changed\n`)
  const truncated = open.length > shownFiles
  if (open.length === 0) return { diff: notes.join(''), truncated }
  const words = ['diff-tree', '-r', '-p', '--no-renames', '--no-ext-diff', '--no-textconv', head, tree, '--']
  const shown = await inCheckout(path, [...words, ...open.slice(0, shownFiles)], context, { env })
  return { diff: shown.stdout + notes.join(''), truncated: truncated || shown.truncated }
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

/** Its copy, where the commit leaves a regular file: what it removes cannot be checked, and a link would lead out of the copy. */
async function copyOf(path: string, laid: string, name: string): Promise<Copy | null> {
  const copy = join(laid, name)
  const found = await lstat(copy).catch(() => null)
  return found?.isFile() ? { path: join(path, name), copy } : null
}
