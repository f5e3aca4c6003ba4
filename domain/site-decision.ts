import { nameSilence, type SilenceFinding } from './silence.ts'

/**
 * The decision of the configured policy about one call. The file has no schemas: rows store
 * decisions, and pages import their types.
 */

/** Verdicts of a policy rule, the strictest first. */
export const siteVerdicts = ['never', 'ask', 'run'] as const
type SiteVerdict = (typeof siteVerdicts)[number]

/**
 * How many people must agree, and the names of the people who may. Null stands for everybody who
 * may decide about the call's risk.
 */
export type SiteDemand = { people: number; groups: readonly string[]; members: readonly string[] | null }

/** Whether an earlier demand of the policy is at least as strict as the current demand. */
export function meetsDemand(asked: SiteDemand | undefined, now: SiteDemand): boolean {
  const { people, members } = asked ?? { people: 1, members: null }
  return (
    people >= now.people && (now.members === null || (members?.every((name) => now.members?.includes(name)) ?? false))
  )
}

/** The policy's decision about one call, as plain data, from which the decision can be repeated. */
export type SiteDecision = {
  action: SiteVerdict
  rule: string
  line: number
  digest: string
  /** The commit of the policy file; null if the file is in a folder. */
  commit: string | null
  /** The people who must agree; set if the action of the rule is `ask`. */
  demand?: SiteDemand
  /** Why the rule with `silenced` applies. */
  silence?: SilenceFinding
  /** For the action `run`: whether every resource is named by kind and id. */
  isNamed?: boolean
}

/**
 * Decisions for the call as a write and as a read. Only the kernel determines which of the two the
 * call is.
 */
export type SiteDecisions = { write: SiteDecision | null; look: SiteDecision | null }

/** Names a rule and its place in the policy file, for people. */
export function nameSiteRule({ rule, line, commit }: Pick<SiteDecision, 'rule' | 'line' | 'commit'>): string {
  return `rule "${rule}" of the site's policy (line ${line}${commit === null ? '' : `, commit ${commit.slice(0, 12)}`})`
}

/** Names the rule of a policy decision and its place, with the silence, for people. */
export function explainSiteRule(site: SiteDecision, does: string): string {
  return `${nameSiteRule(site)} ${does}${site.silence ? `: ${nameSilence(site.silence)}` : ''}`
}

/** Reads what the policy demanded when people were asked. The demand is stored with the dry run. */
export function demandOf(dryRun: {
  details: Record<string, unknown>
}): (SiteDemand & Pick<SiteDecision, 'rule' | 'line' | 'commit' | 'silence'>) | null {
  const { sitePolicy: site } = dryRun.details as { sitePolicy?: SiteDecision }
  if (!site?.demand) return null
  const { rule, line, commit, demand, silence } = site
  return { rule, line, commit, ...(silence && { silence }), ...demand }
}

/** Explains why this person may not decide, if the policy lists names; null if the person may. */
export function whyNoMember(name: string, dryRun: { details: Record<string, unknown> } | null): string | null {
  const site = dryRun && demandOf(dryRun)
  if (!site?.members || site.members.includes(name)) return null
  return `${name} is not in ${site.groups.join(' and ')}; only members may decide, by ${nameSiteRule(site)}`
}
