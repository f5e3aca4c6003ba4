import { nameSilence, type SilenceFinding } from './silence.ts'

/**
 * The site policy's decision on one call. Plain words: rows store them, and pages read them without
 * a parser.
 */

/** What a rule says about what fits it, from the strictest. */
export const siteVerdicts = ['never', 'ask', 'run'] as const
type SiteVerdict = (typeof siteVerdicts)[number]

/**
 * The number that must agree, and the names of those who may; null: anybody who may decide such a
 * risk.
 */
export type SiteDemand = { people: number; groups: readonly string[]; members: readonly string[] | null }

/** Is what was asked for at least what is asked for now? */
export function meetsDemand(asked: SiteDemand | undefined, now: SiteDemand): boolean {
  const { people, members } = asked ?? { people: 1, members: null }
  return (
    people >= now.people && (now.members === null || (members?.every((name) => now.members?.includes(name)) ?? false))
  )
}

/** The policy's word on one call: plain data in a ruling, so that it can be judged again. */
export type SiteDecision = {
  action: SiteVerdict
  rule: string
  line: number
  digest: string
  /** Null where the file lies in a folder. */
  commit: string | null
  /** For `ask`. */
  demand?: SiteDemand
  /** For a rule with `silenced`: why it fits. */
  silence?: SilenceFinding
  /** For `run`: whether each thing is named by kind and id. */
  isNamed?: boolean
}

/** As a write, and as a look: only the kernel knows which of them a command is. */
export type SiteDecisions = { write: SiteDecision | null; look: SiteDecision | null }

/** Where a rule stands, in a sentence for people. */
export function nameSiteRule({ rule, line, commit }: Pick<SiteDecision, 'rule' | 'line' | 'commit'>): string {
  return `rule "${rule}" of the site's policy (line ${line}${commit === null ? '' : `, commit ${commit.slice(0, 12)}`})`
}

/** The same, with what it is silenced by, for a ruling. */
export function explainSiteRule(site: SiteDecision, does: string): string {
  return `${nameSiteRule(site)} ${does}${site.silence ? `: ${nameSilence(site.silence)}` : ''}`
}

/** What the policy wanted when people were asked: it stands with what they were shown. */
export function demandOf(dryRun: {
  details: Record<string, unknown>
}): (SiteDemand & Pick<SiteDecision, 'rule' | 'line' | 'commit' | 'silence'>) | null {
  const { sitePolicy: site } = dryRun.details as { sitePolicy?: SiteDecision }
  if (!site?.demand) return null
  const { rule, line, commit, demand, silence } = site
  return { rule, line, commit, ...(silence && { silence }), ...demand }
}

/** Why this person may not decide, where the site names who may; null where they may. */
export function whyNoMember(name: string, dryRun: { details: Record<string, unknown> } | null): string | null {
  const site = dryRun && demandOf(dryRun)
  if (!site?.members || site.members.includes(name)) return null
  return `${name} is not in ${site.groups.join(' and ')}, whose people decide this by ${nameSiteRule(site)}`
}
