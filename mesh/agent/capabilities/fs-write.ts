import { writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { z } from 'zod'
import { sha256 } from '../../../domain/digest.ts'
import { fsWriteArgs } from '../../specs/fs.ts'
import type { CapabilityContext, DeviceCapability, Outcome } from '../capability.ts'
import { bytesOf, readWhole, unifiedDiff, wholeBytes } from '../content.ts'
import { CapabilityError, inTurn, toOutcome } from '../operation.ts'
import { inThrowAway, runChecks, withheld } from '../rehearsal.ts'
import { keepVersion, replace } from '../replace.ts'
import { isSecret, missingWritableRoot, requirePlace, weighWrite } from '../roots.ts'
import { beside, entry, modeOf, type OpenEntry, openContent } from '../walk.ts'

type WriteArgs = z.infer<typeof fsWriteArgs>

/**
 * Writes a file atomically: a reader sees the old or the new content. An append is such a write
 * too, so a program that holds the file open goes on with the old one. Keeps owner and mode, and
 * what it held before (`previous_version`, on the device). The rehearsal writes a copy, and answers
 * `{ diff, checks, would_change }`.
 */
export const fsWrite: DeviceCapability<WriteArgs> = {
  capability: 'fs.write',
  args: fsWriteArgs,
  missingPrerequisite: missingWritableRoot,
  weigh: ({ path }, manifest) => weighWrite(path, manifest),
  run: (args, context) => inPlace(args, context, (change) => write(change, context)),
  rehearse: (args, context) => inPlace(args, context, (change) => rehearse(change, context)),
}

/** What is to be done, made up from what is there: the same for the act and its rehearsal. */
type Change = {
  directory: OpenEntry
  name: string
  path: string
  former: { stat: OpenEntry['stat']; bytes: Buffer } | null
  bytes: Buffer
  mode: number
}

function inPlace(
  args: WriteArgs,
  context: CapabilityContext,
  act: (change: Change) => Promise<Outcome>,
): Promise<Outcome> {
  return toOutcome(context.signal, async () => {
    const place = requirePlace(args.path, context.manifest, context, 'change')
    const given = bytesOf(args.content, args.encoding)
    return inTurn(place.path, () =>
      beside(place, async (directory, name) => {
        const former = await formerOf(directory, name, context.signal)
        if (args.if_sha256 !== undefined && (!former || sha256(former.bytes) !== args.if_sha256))
          throw new CapabilityError('conflict', `${place.path} does not hold what if_sha256 says`)
        const bytes = args.append && former ? Buffer.concat([former.bytes, given]) : given
        if (bytes.length > wholeBytes) throw new CapabilityError('failed', `${place.path} would be larger than 16 MiB`)
        const mode = args.mode ? Number.parseInt(args.mode, 8) : former ? Number(former.stat.mode & 0o777n) : 0o644
        return act({ directory, name, path: place.path, former, bytes, mode })
      }),
    )
  })
}

async function formerOf(directory: OpenEntry, name: string, signal: AbortSignal): Promise<Change['former']> {
  const held = await entry(directory, name)
  if (!held) return null
  try {
    const { stat, path } = held
    if (stat.isFile() && stat.nlink > 1n)
      throw new CapabilityError('outside_roots', `${path} has another name, which may be outside the roots`)
    if ((stat.mode & 0o7000n) !== 0n && stat.isFile())
      throw new CapabilityError('failed', `${path} is setuid, setgid or sticky: such files are not written`)
    const file = await openContent(held)
    try {
      return { stat, bytes: await readWhole(file, path, signal) }
    } finally {
      await file.close()
    }
  } finally {
    await held.handle.close()
  }
}

async function write(change: Change, { state, signal }: CapabilityContext): Promise<Outcome> {
  const { directory, name, path, former, bytes, mode } = change
  const version = former ? await keepVersion(state, path, former.bytes) : null
  signal.throwIfAborted()
  await replace(directory, name, bytes, mode, former?.stat ?? null)
  const result = {
    path,
    created: former === null,
    size: bytes.length,
    sha256: sha256(bytes),
    mode: `0${mode.toString(8).padStart(3, '0')}`,
    previous_sha256: former ? sha256(former.bytes) : null,
    previous_version: version,
  }
  return { ok: true, result, truncated: false }
}

function rehearse({ name, path, former, bytes, mode }: Change, context: CapabilityContext): Promise<Outcome> {
  return inThrowAway(context.state, async (directory) => {
    const copy = join(directory, name)
    await writeFile(copy, bytes, { mode: 0o600, flag: 'wx' })
    const secret = isSecret(path)
    const shown = secret ? null : await unifiedDiff(path, former?.bytes ?? null, bytes)
    const checks = await runChecks([{ path, copy }], directory, context)
    const kept = former?.bytes.equals(bytes) && Number(former.stat.mode & 0o777n) === mode
    const result = {
      diff: shown?.diff ?? withheld,
      checks,
      would_change: !kept,
      path,
      mode: { before: former ? modeOf(former.stat) : null, after: `0${mode.toString(8).padStart(3, '0')}` },
      sha256: secret ? null : sha256(bytes),
    }
    return { ok: true, result, truncated: shown?.truncated ?? false }
  })
}
