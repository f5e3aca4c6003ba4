import { z } from 'zod'
import type { EventKind, IncidentEvent, NotedCode } from './event.ts'
import {
  causeOf,
  doneOf,
  type IncidentLog,
  impactOf,
  ofKind,
  type PostmortemAbout,
  questionsOf,
  refusedOf,
  type Sentence,
  sentence,
  summaryOf,
} from './postmortem-sections.ts'

/**
 * Sections of a postmortem, in order. People may write any section, and only people write
 * `followUp`.
 */
const postmortemSection = z.enum(['summary', 'impact', 'cause', 'done', 'refused', 'questions', 'followUp'])
export type PostmortemSection = z.infer<typeof postmortemSection>

export const sectionTitles: Record<PostmortemSection, string> = {
  summary: 'Summary',
  impact: 'Impact',
  cause: 'Cause',
  done: 'What was done',
  refused: 'What was refused',
  questions: 'Open questions',
  followUp: 'What we change',
}

/** One person's edit of some sections. A section that is null shows the computed text again. */
const postmortemEdit = z.object({
  version: z.number().int(),
  by: z.string(),
  at: z.string(),
  sections: z.partialRecord(postmortemSection, z.string().nullable()),
})
export type PostmortemEdit = z.infer<typeof postmortemEdit>

export const postmortem = z.object({
  incidentId: z.string(),
  title: z.string(),
  /** The version of the newest edit; 0 if nobody edited the postmortem. */
  version: z.number().int(),
  sections: z.array(
    z.object({
      section: postmortemSection,
      title: z.string(),
      /** The computed text, even if a person replaced it. */
      sentences: z.array(sentence),
      /** The shown text as Markdown, with which an edit begins. */
      text: z.string(),
      /** A person's text in Markdown; null if nobody wrote this section. */
      edited: z.object({ text: z.string(), by: z.string(), at: z.string(), version: z.number().int() }).nullable(),
    }),
  ),
  /** The most important log rows, oldest first. `left`: how many more rows are only in the log. */
  timeline: z.array(z.object({ seq: z.number().int(), at: z.string(), actor: z.string(), text: z.string() })),
  left: z.number().int(),
  /** The number of rows in the log. */
  rows: z.number().int(),
  /** Edits of people with author, time and sections, the newest last. */
  edits: z.array(postmortemEdit.omit({ sections: true }).extend({ sections: z.array(postmortemSection) })),
})
export type Postmortem = z.infer<typeof postmortem>

const maxTimeline = 200

/**
 * Builds the postmortem of an incident from computed sections and people's texts. Has no side
 * effect and never throws.
 */
export function foldPostmortem(
  incident: PostmortemAbout,
  events: IncidentLog,
  edits: readonly PostmortemEdit[] = [],
): Postmortem {
  const folded: Record<PostmortemSection, Sentence[]> = {
    summary: summaryOf(incident, events),
    impact: impactOf(events),
    cause: causeOf(incident, events),
    done: doneOf(incident, events),
    refused: refusedOf(events),
    questions: questionsOf(incident, events),
    followUp: [],
  }
  const key = keyRows(events)
  return {
    incidentId: incident.id,
    title: incident.title,
    version: edits.at(-1)?.version ?? 0,
    sections: postmortemSection.options.map((section) => {
      const edited = editedOf(section, edits)
      const sentences = folded[section]
      const text = sectionText({ sentences, edited })
      return { section, title: sectionTitles[section], sentences, text, edited }
    }),
    timeline: key.slice(0, maxTimeline).map(({ seq, at, actor, detail }) => ({ seq, at, actor, text: detail })),
    left: Math.max(0, key.length - maxTimeline),
    rows: events.length,
    edits: edits.map(({ sections, ...edit }) => ({
      ...edit,
      sections: postmortemSection.options.filter((each) => sections[each] !== undefined),
    })),
  }
}

const keyKinds: readonly EventKind[] = [
  ...([
    'claimed',
    'approval_requested',
    'approval_decided',
    'approval_expired',
    'approval_withdrawn',
    'grant_used',
  ] as const),
  ...([
    'verification',
    'capability_gap',
    'budget_ended',
    'security_event',
    'resolved',
    'escalated',
    'cancelled',
  ] as const),
]
const keyNotes: readonly NotedCode[] = [
  ...(['reopened', 'taken', 'given_back', 'repair_confirmed', 'watch_over', 'run_lost'] as const),
  ...(['page_held', 'page_released', 'page_spared'] as const),
  ...(['wake_held', 'wake_late', 'follow_up_opened', 'follow_up_closed'] as const),
]

/**
 * Chooses the log rows of the timeline. Of an alert that is repeated, chooses only the first row of
 * each state.
 */
function keyRows(events: IncidentLog): IncidentEvent[] {
  const firsts = new Set(
    [
      ...Map.groupBy(ofKind(events, 'alert_received'), ({ metadata }) => `${metadata.fingerprint} ${metadata.status}`),
    ].map(([, rows]) => rows[0]?.seq),
  )
  return events.filter((event) => {
    if (event.kind === 'alert_received') return firsts.has(event.seq)
    if (event.kind === 'tool_started') return event.metadata.effect === 'write'
    if (event.kind === 'noted') return keyNotes.includes(event.metadata.code)
    if (event.kind === 'commented') {
      const { hypothesis } = event.metadata
      return event.actor.startsWith('user:') || (hypothesis !== undefined && hypothesis.state !== 'proposed')
    }
    return keyKinds.includes(event.kind)
  })
}

/** Finds the newest edit of one section. */
function editedOf(section: PostmortemSection, edits: readonly PostmortemEdit[]) {
  const newest = edits.findLast(({ sections }) => sections[section] !== undefined)
  const text = newest?.sections[section]
  return newest && typeof text === 'string' ? { text, by: newest.by, at: newest.at, version: newest.version } : null
}

type SectionWords = Pick<Postmortem['sections'][number], 'sentences' | 'edited'>

/**
 * Formats a section as Markdown: the text of a person, otherwise one line for each sentence, with
 * the numbers of its rows.
 */
function sectionText({ sentences, edited }: SectionWords, toLink = plainRow): string {
  if (edited) return edited.text.trim()
  let attempt: number | null = null
  const lines = sentences.flatMap((each) => {
    const heading = each.attempt !== null && each.attempt !== attempt ? [`### Attempt ${each.attempt}`] : []
    attempt = each.attempt
    const rows = each.rows.map(toLink).join(', ')
    return [...heading, `- ${plain(each.text)}${rows && ` (${rows})`}`]
  })
  return lines.join('\n')
}

const plainRow = (seq: number) => `#${seq}`

/**
 * Formats the whole postmortem as Markdown, with the log as appendix. If the address of the
 * incident's page is given, each number of a row is a link. The last line contains the version of
 * people's texts, so that an upload does not overwrite newer texts.
 */
export function postmortemMarkdown(found: Postmortem, events: IncidentLog, page: string | null): string {
  const toLink = (seq: number) => (page === null ? plainRow(seq) : `[#${seq}](${page}#e-${seq})`)
  const rows = (items: { seq: number; at: string; actor: string; text: string }[]) => [
    '| time (UTC) | row | who | what |',
    '| --- | --- | --- | --- |',
    ...items.map(({ seq, at, actor, text }) => `| ${utc(at)} | ${toLink(seq)} | ${plain(actor)} | ${plain(text)} |`),
  ]
  return [
    `# ${plain(found.title)}`,
    ...found.sections.flatMap((each) => [
      `## ${each.title}`,
      sectionText(each, toLink),
      ...(each.edited ? [`*Edited by ${plain(each.edited.by)} at ${utc(each.edited.at)} UTC.*`] : []),
    ]),
    `## ${timelineTitle}`,
    [...rows(found.timeline), ...(found.left > 0 ? ['', `${found.left} more are in the log.`] : [])].join('\n'),
    `## ${logTitle}`,
    rows(events.map(({ seq, at, actor, detail }) => ({ seq, at, actor, text: detail }))).join('\n'),
    `<!-- ${found.incidentId} version ${found.version} -->`,
    '',
  ].join('\n\n')
}

const timelineTitle = 'Timeline'
const logTitle = 'Appendix: the log'

function utc(time: string): string {
  return time.slice(0, 19).replace('T', ' ')
}

/** Makes untrusted text plain: without markup, links, table cells and new lines. */
function plain(text: string): string {
  return text
    .replace(/\s+/g, ' ')
    .replace(/[\\`*_{}[\]<>#|!~]/g, (character) => `\\${character}`)
    .trim()
}

type PostmortemDraft =
  | { ok: true; version: number; sections: PostmortemEdit['sections'] }
  | { ok: false; reason: string }

/**
 * Reads people's changes from a Markdown file, in which each section has its heading, such as `##
 * Cause`. An unchanged or absent section changes nothing. An empty section returns to the computed
 * text. A version in the file replaces the current version as the base of the edit.
 */
export function parsePostmortem(text: string, found: Postmortem): PostmortemDraft {
  const sections: PostmortemEdit['sections'] = {}
  const version = new RegExp(`<!-- ${found.incidentId} version (\\d+) -->`).exec(text)?.[1]
  const body = text.replace(/<!-- inc_\w+ version \d+ -->/g, '')
  const parts = body.split(/^## +(.+?) *$/m)
  for (let at = 1; at < parts.length; at += 2) {
    const title = parts[at] ?? ''
    if (title === timelineTitle || title === logTitle) continue
    const section = found.sections.find((each) => each.title.toLowerCase() === title.toLowerCase())
    if (!section) {
      const titles = found.sections.map((each) => each.title).join(', ')
      return { ok: false, reason: `"${title}" is not a section. Sections: ${titles}. Use ### for headings within one.` }
    }
    const said = (parts[at + 1] ?? '').replace(/^\*Edited by .* UTC\.\*$/m, '').trim()
    if (unlinked(said) === unlinked(section.text)) continue
    if (said !== '') sections[section.section] = said
    else if (section.edited) sections[section.section] = null
  }
  if (parts.length === 1)
    return { ok: false, reason: 'The file has no section: begin one with a heading, as "## Cause".' }
  return { ok: true, version: version === undefined ? found.version : Number(version), sections }
}

/** Removes links from the numbers of rows. Only a file from the API has links there. */
function unlinked(text: string): string {
  return text.replace(/\[(#\d+)\]\([^)]*\)/g, '$1').trim()
}
