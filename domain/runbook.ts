import { z } from 'zod'
import { inventoryKind } from './registry.ts'

/**
 * A runbook: how to investigate, decide, repair and verify a kind of problem. A file
 * `<name>/SKILL.md` in the format of Agent Skills (https://agentskills.io): front matter, then
 * Markdown. A runbook only suggests actions: the kernel never reads it.
 */
export const runbookName = z
  .string()
  .max(64)
  .regex(
    /^[a-z0-9]+(-[a-z0-9]+)*$/,
    'must be small letters, digits and single dashes between them, 64 characters at most',
  )

/** The origins of runbooks. If two have one name, the file from the later origin is used. */
export const runbookOrigins = ['shipped', 'repository', 'folder'] as const
const runbookOrigin = z.enum(runbookOrigins)
export type RunbookOrigin = z.infer<typeof runbookOrigin>

const line = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .regex(/^[^\p{Cc}\p{Zl}\p{Zp}]*$/u, 'must be one line')

/**
 * A pattern of incident types in which `*` stands for any text. A single star is refused, because
 * no runbook is about all incidents.
 */
const typePattern = line(100).regex(
  /[^*]/,
  'matches every type: name types, or leave incident_types out for a runbook about a kind of resource',
)

/**
 * The fields that front matter may have. The fields of Agent Skills come first. The fields of
 * Nightshift follow.
 */
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

/** A runbook as lists of runbooks show it. */
const listedRunbook = z.object({
  name: runbookName,
  description: z.string(),
  incidentTypes: z.array(z.string()),
  resourceKinds: z.array(inventoryKind),
  owner: z.string().nullable(),
  reviewedAt: z.string().nullable(),
  origin: runbookOrigin,
  /** Origins of the files with this name that this file overrides. */
  replaces: z.array(runbookOrigin),
  /** SHA-256 of the runbook's body. */
  digest: z.string(),
  bytes: z.number().int(),
})
export type ListedRunbook = z.infer<typeof listedRunbook>

export const shownRunbook = listedRunbook.extend({ body: z.string() })
export type Runbook = z.infer<typeof shownRunbook>

/** A refused file, with the reason and the remedy. All accepted files are used nevertheless. */
const refusedFile = z.object({ origin: runbookOrigin, file: z.string(), why: z.string(), remedy: z.string() })
export type RefusedFile = z.infer<typeof refusedFile>

/** A place with the installation's own runbooks, and whether it could be read. */
const knowledgePlace = z.object({
  origin: runbookOrigin,
  /** The address or path, without credentials. */
  at: z.string(),
  commit: z.string().nullable(),
  readAt: z.string().nullable(),
  /** Why the last read of the place failed. Runbooks that were read earlier stay in use. */
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
 * Why a runbook is offered: the type of the incident is in its list, or matches one of its
 * patterns, or the kind of resource or words match.
 */
export const matchReasons = ['type', 'pattern', 'kind', 'words'] as const
export const runbookMatch = z.object({
  /** The runbook in the model's context: the best runbook, if it fits by type or kind. */
  chosen: shownRunbook.extend({ why: z.enum(matchReasons) }).nullable(),
  /** The next best runbooks, by name. The tool `read_runbook` returns their bodies. */
  others: z.array(listedRunbook.pick({ name: true, description: true }).extend({ why: z.enum(matchReasons) })),
})
export type RunbookMatch = z.infer<typeof runbookMatch>

/**
 * The runbook that a model received, as the log row about the context records it: name, digest and
 * origin.
 */
export type RunbookGiven = Pick<Runbook, 'name' | 'origin' | 'digest'> & { why: (typeof matchReasons)[number] }

/** Maximum characters of a runbook in the context. `read_runbook` returns the rest of it. */
export const inlineCharacters = 3_000
