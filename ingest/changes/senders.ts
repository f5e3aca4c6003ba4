import { createHmac, timingSafeEqual } from 'node:crypto'
import type { Change, ParsedChanges } from '../../domain/change.ts'
import { sha256 } from '../../domain/digest.ts'
import type { ChangeDelivery } from './fields.ts'
import { parseGenericChanges } from './generic.ts'
import { parseGithub } from './github.ts'
import { parseGitlab } from './gitlab.ts'

/** Headers of a request, by name in small letters. */
export type ReadHeader = (name: string) => string | undefined

/** Who posts changes, and how such a sender proves itself. A new sender is one file and one entry here. */
export type ChangeSender = {
  name: Change['source']
  /** The header that names the event. One that has it is this sender's delivery. */
  eventHeader: string | null
  /** The header with a name that every repeat of a delivery has. */
  keyHeader: string | null
  /** The setting with the secret that proves a delivery; without a value its deliveries need a token as alerts do. */
  secretSetting: string | null
  /** Is this delivery made with the secret? In constant time, before anything in the body is read. */
  isProven(secret: string, header: ReadHeader, bytes: Uint8Array): boolean
  /** Pure and total: any bytes give changes or a reason. */
  parse(delivery: ChangeDelivery, nowIso: string): ParsedChanges
}

const generic: ChangeSender = {
  name: 'generic',

  eventHeader: null,
  keyHeader: null,
  secretSetting: null,
  isProven: () => false,
  parse: parseGenericChanges,
}

const senders: readonly ChangeSender[] = [
  {
    name: 'github',

    eventHeader: 'x-github-event',
    keyHeader: null,
    secretSetting: 'change.github_secret',
    isProven: (secret, header, bytes) =>
      isSame(header('x-hub-signature-256') ?? '', `sha256=${createHmac('sha256', secret).update(bytes).digest('hex')}`),
    parse: parseGithub,
  },
  {
    name: 'gitlab',

    eventHeader: 'x-gitlab-event',
    keyHeader: 'idempotency-key',
    secretSetting: 'change.gitlab_token',
    isProven: (secret, header) => isSame(header('x-gitlab-token') ?? '', secret),
    parse: parseGitlab,
  },
]

/** Whose delivery it is, by its headers; without those of a known sender it is `generic`. Null: two senders claim it. */
export function senderOf(header: ReadHeader): ChangeSender | null {
  const claiming = senders.filter(({ eventHeader }) => eventHeader !== null && header(eventHeader) !== undefined)
  if (claiming.length > 1) return null
  return claiming[0] ?? generic
}

/** Compares digests, so that neither content nor length shows in the time it takes. */
function isSame(given: string, expected: string): boolean {
  return timingSafeEqual(Buffer.from(sha256(given)), Buffer.from(sha256(expected)))
}
