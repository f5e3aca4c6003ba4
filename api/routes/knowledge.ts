import { z } from '@hono/zod-openapi'
import { readFirstTurn } from '../../activities/first-turn.ts'
import { bodyText } from '../../db/log/bodies.ts'
import { eventsOf } from '../../db/log/events.ts'
import { readSettings } from '../../db/settings.ts'
import type { ChatTool } from '../../domain/chat.ts'
import type { InventoryKind } from '../../domain/kinds.ts'
import { shownPrompt } from '../../domain/prompt.ts'
import { inventoryKind } from '../../domain/registry.ts'
import { knowledgeList, type Runbook, runbookMatch, runbookName, shownRunbook } from '../../domain/runbook.ts'
import { listJobs } from '../../effects/jobs/jobs.ts'
import { readPrompts, renderContext, renderRunbooks } from '../../prompts/render.ts'
import type { ApiDeps } from '../deps.ts'
import { endpoint } from '../http/endpoint.ts'
import { Problem } from '../http/problem.ts'
import { incidentId } from './examples.ts'
import { incidentParams, requireIncident } from './incidents.ts'

const tag = 'knowledge'

const exampleBody = 'Look: which VMs are still on the host.\n\nRepair: plan with intent drain.'
const example: Runbook = {
  name: 'host-draining',
  description: 'A host is to be emptied for maintenance.',
  incidentTypes: ['host_draining'],
  resourceKinds: ['host'],
  owner: 'platform team',
  reviewedAt: '2026-11-01',
  origin: 'folder',
  replaces: ['shipped'],
  digest: '5d41402abc4b2a76b9719d911017c5925d41402abc4b2a76b9719d911017c592',
  bytes: exampleBody.length,
  body: exampleBody,
}
const { body: _, ...listedExample } = example

const listEndpoint = endpoint({
  method: 'get',
  path: '/knowledge',
  permission: 'read',
  tag,
  summary: 'Runbooks by name, rejected files with the reason, and where the site keeps its own runbooks',
  answer: knowledgeList,
  example: {
    items: [listedExample],
    nextCursor: null,
    refused: [
      { origin: 'folder', file: 'old/SKILL.md', why: 'the file is not UTF-8', remedy: 'save the file as UTF-8' },
    ],
    places: [
      {
        origin: 'folder',
        at: '/etc/nightshift/knowledge',
        commit: null,
        readAt: '2026-11-21T01:46:00.000Z',
        error: null,
      },
    ],
  },
  run: async (_, deps) => deps.knowledge.list(),
})

const matchEndpoint = endpoint({
  method: 'get',
  path: '/knowledge-match',
  permission: 'read',
  tag,
  summary: 'The runbook that an incident of a type gets in full, and the two others that it gets by name',
  description:
    'Runbooks match by type, then by pattern, then by kind. A match by words only adds names and orders them: a runbook that only matches by words is not given in full.',
  query: z.object({
    type: z.string().min(1).max(200),
    kind: inventoryKind.optional(),
    words: z.string().max(1_000).optional(),
  }),
  answer: runbookMatch,
  example: {
    chosen: { ...example, why: 'type' },
    others: [{ name: 'host-down', description: 'A host of virtual machines is down.', why: 'words' }],
  },
  run: async ({ query: { type, kind = null, words = '' } }, deps) => deps.knowledge.match({ type, kind, words }),
})

const showEndpoint = endpoint({
  method: 'get',
  path: '/knowledge/{name}',
  permission: 'read',
  tag,
  summary: 'A runbook with its body, in Markdown',
  description: "The text is advice from the runbook's author; code never acts on the text.",
  params: z.object({ name: runbookName }),
  answer: shownRunbook,
  example,
  problems: [404],
  async run({ params: { name } }, deps) {
    const found = deps.knowledge.show(name)
    if (found) return found
    throw new Problem(404, 'NOT_FOUND', `There is no runbook ${name}: "nightshift knowledge list" shows all runbooks.`)
  },
})

const promptExample = {
  system: 'You are …',
  tools: [],
  more: ['read_result'],
  context: null,
  runbooks: null,
  bytes: { system: 11, tools: 2, first: 13, context: 0, runbooks: 0 },
}

const promptEndpoint = endpoint({
  method: 'get',
  path: '/prompt',
  permission: 'read',
  tag,
  summary: 'The first prompt for an incident of a type on a kind of resource, with its size',
  query: z.object({
    type: z.string().min(1).max(200).default('unknown'),
    kind: inventoryKind.optional(),
    protocol: z.enum(['native', 'json']).default('native'),
  }),
  answer: shownPrompt,
  example: promptExample,
  run: ({ query: { type, kind = null, protocol } }, deps) => readPrompt(deps, type, kind, protocol),
})

async function readPrompt(deps: ApiDeps, type: string, kind: InventoryKind | null, protocol: 'native' | 'json') {
  const jobs = listJobs(deps.jobs, null)
  const match = deps.knowledge.match({ type, kind, words: '' })
  const about = {
    type,
    kind,
    jobs: jobs.map(({ name }) => name),
    hasFittingJob: jobs.some((job) => job.kind === kind),
    runbooks: match,
  }
  const settings = await readSettings(deps.db, deps.environment)
  const {
    system,
    tools,
    more,
    runbooks: fitting,
  } = await readFirstTurn({ db: deps.db, prompts: readPrompts(), settings }, protocol, about)
  const runbooks = match.chosen === null && match.others.length === 0 ? null : renderRunbooks(fitting ?? match)
  return withBytes({ system, tools, more, context: null, runbooks })
}

const promptOfIncidentEndpoint = endpoint({
  method: 'get',
  path: '/incidents/{id}/prompt',
  permission: 'read',
  tag,
  summary: 'The stored first prompt of the newest attempt, with its size',
  params: incidentParams,
  answer: shownPrompt,
  example: { ...promptExample, context: `{"incident":{"id":"${incidentId}"}}` },
  problems: [404, 409],
  async run({ scope, params: { id } }, deps) {
    await requireIncident(scope, id)
    return await readPromptOfIncident(deps, id)
  },
})

async function readPromptOfIncident({ db }: ApiDeps, id: string) {
  const opening = (await eventsOf(db, id)).findLast((event) => event.kind === 'context_assembled')
  if (opening?.kind !== 'context_assembled')
    throw new Problem(409, 'NOT_INVESTIGATED', 'No investigation of this incident has read its context yet.')
  const { prompt, tools, more, context, runbooks } = opening.metadata
  const read = async (digest: string): Promise<string> => await bodyText(db, digest)
  const { hint: _, ...known } = JSON.parse(await read(context.digest)) as Record<string, unknown>
  return withBytes({
    system: await read(prompt.digest),
    tools: JSON.parse(await read(tools.digest)) as ChatTool[],
    more: more ? (JSON.parse(await read(more.digest)) as ChatTool[]) : [],
    context: renderContext({ ...known, hint: null }),
    runbooks: runbooks ? renderRunbooks(runbookMatch.parse(JSON.parse(await read(runbooks.digest)))) : null,
  })
}

type Read = { system: string; tools: ChatTool[]; more: ChatTool[]; context: string | null; runbooks: string | null }

function withBytes({ system, tools, more, context, runbooks }: Read): z.infer<typeof shownPrompt> {
  const [prompt, definitions] = [Buffer.byteLength(system), Buffer.byteLength(JSON.stringify(tools))]
  const bytes = { system: prompt, tools: definitions, first: prompt + definitions }
  const given = { context: Buffer.byteLength(context ?? ''), runbooks: Buffer.byteLength(runbooks ?? '') }
  const names = more.map((tool) => tool.function.name)
  return { system, tools, more: names, context, runbooks, bytes: { ...bytes, ...given } }
}

/** Routes for the runbooks, the runbook that fits an incident, and a model's first input. */
export const knowledgeRoutes = [listEndpoint, matchEndpoint, showEndpoint, promptEndpoint, promptOfIncidentEndpoint]
