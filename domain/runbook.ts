import { z } from 'zod'
import { inventoryKind } from './registry.ts'

/**
 * A runbook: how a kind of trouble is looked at, decided, repaired and proved. A file
 * `<name>/SKILL.md` in the Agent Skills form (https://agentskills.io): front matter, then Markdown.
 * It suggests; no judgement reads it.
 */
export const runbookName = z
  .string()
  .max(64)
  .regex(
    /^[a-z0-9]+(-[a-z0-9]+)*$/,
    'takes small letters, digits and single dashes between them, 64 characters at most',
  )

/** Where a file came from. A later one of the same name wins over an earlier one. */
export const runbookOrigins = ['shipped', 'repository', 'folder'] as const
const runbookOrigin = z.enum(runbookOrigins)
export type RunbookOrigin = z.infer<typeof runbookOrigin>

const line = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[^\p{Cc}\p{Zl}\p{Zp}]*$/u, 'takes one line')

/** `*` stands for any text; one star alone would be every incident, which no runbook is about. */
const typePattern = line(100).regex(
  /[^*]/,
  'names no type: leave incident_types out for a runbook that is about a kind',
)

/** What the front matter may say. The first group is that of the form; ours follow. */
export const frontMatter = z.strictObject({
  name: runbookName,
  description: line(1_024),
  license: z.string().max(500).optional(),
  compatibility: z.string().max(500).optional(),
  metadata: z.record(z.string().max(100), z.unknown()).optional(),
  'allowed-tools': z.string().max(1_000).optional(),
  incident_types: z.array(typePattern).max(50).default([]),
  resource_kinds: z.array(inventoryKind).max(20).default([]),
  owner: line(200).optional(),
  reviewed_at: z.iso.date().optional(),
})

/** One runbook as lists show it. */
const listedRunbook = z.object({
  name: runbookName,
  description: z.string(),
  incidentTypes: z.array(z.string()),
  resourceKinds: z.array(inventoryKind),
  owner: z.string().nullable(),
  reviewedAt: z.string().nullable(),
  origin: runbookOrigin,
  /** The owner of the file of this name that it stands before. */
  replaces: z.array(runbookOrigin),
  /** SHA-256 of the body. */
  digest: z.string(),
  bytes: z.number().int(),
})
export type ListedRunbook = z.infer<typeof listedRunbook>

export const shownRunbook = listedRunbook.extend({ body: z.string() })
export type Runbook = z.infer<typeof shownRunbook>

/** A file that is not taken, and what its owner can do. The others are taken all the same. */
const refusedFile = z.object({ origin: runbookOrigin, file: z.string(), why: z.string(), remedy: z.string() })
export type RefusedFile = z.infer<typeof refusedFile>

/** Where a site keeps its own, and whether it could be read. */
const knowledgePlace = z.object({
  origin: runbookOrigin,
  /** Without credentials. */
  at: z.string(),
  commit: z.string().nullable(),
  readAt: z.string().nullable(),
  /** Why it could not be read the last time; what was read before stays. */
  error: z.string().nullable(),
})
export type KnowledgePlace = z.infer<typeof knowledgePlace>

export const knowledgeList = z.object({
  items: z.array(listedRunbook),
  nextCursor: z.null(),
  refused: z.array(refusedFile),
  places: z.array(knowledgePlace),
})
export type KnowledgeList = z.infer<typeof knowledgeList>

/**
 * The reason to offer a runbook: its types hold the incident's, or a pattern, kind of resource or
 * words fit.
 */
export const matchReasons = ['type', 'pattern', 'kind', 'words'] as const
export const runbookMatch = z.object({
  /** What a model gets with its context: the best one, where it fits by type or kind. */
  chosen: shownRunbook.extend({ why: z.enum(matchReasons) }).nullable(),
  /** The next ones, by name: `read_runbook` gives the body. */
  others: z.array(listedRunbook.pick({ name: true, description: true }).extend({ why: z.enum(matchReasons) })),
})
export type RunbookMatch = z.infer<typeof runbookMatch>

/** The runbook that a model had, in the context's row: name, content's digest, place. */
export type RunbookGiven = Pick<Runbook, 'name' | 'origin' | 'digest'> & { why: (typeof matchReasons)[number] }

/** The length of a body that is given unasked; `read_runbook` gives the rest. */
export const inlineCharacters = 3_000
