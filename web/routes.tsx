import type { ComponentType } from 'react'
import type { Permission } from '../domain/permissions.ts'
import { ApprovalPage } from './approvals/card.tsx'
import { ApprovalsPage } from './approvals/inbox.tsx'
import { ConfigPage } from './config/settings.tsx'
import { HomePage } from './home/page.tsx'
import { IncidentPage } from './incident/page.tsx'
import { AlertsPage } from './pages/alerts.tsx'
import { AuditPage } from './pages/audit.tsx'
import { DevicesPage } from './pages/devices.tsx'
import { HealthPage } from './pages/health.tsx'
import { IncidentsPage } from './pages/incidents.tsx'
import { JobPage, JobsPage } from './pages/jobs.tsx'
import { KnowledgePage, RunbookPage } from './pages/knowledge.tsx'
import { PeoplePage } from './pages/people.tsx'
import { PostmortemPage } from './pages/postmortem.tsx'
import { ReportsPage } from './pages/reports.tsx'
import { ResourcePage, ResourcesPage } from './pages/resources.tsx'
import { ShiftPage } from './pages/shift.tsx'
import { TokensPage } from './pages/tokens.tsx'
import { TrustPage, TrustPairPage } from './pages/trust.tsx'
import { GapsPage, UsagePage } from './pages/usage.tsx'

export type RouteGroup = 'Work' | 'Estate' | 'Know' | 'Insight' | 'Settings'

export type PageRoute = {
  path: string
  group: RouteGroup
  /** The path of the page with which it shares a place in the navigation, as a tab. */
  within?: string
  /** The title of the page, which is also its text in the navigation. */
  title: string
  /**
   * The permission without which the page shows only that it is required. Null if all signed-in
   * people may see the page.
   */
  permission: Permission | null
  /** Advice for people without the permission. */
  advice?: string
  Page: ComponentType<{ title: string }>
  /** The page for one object of the list, at `path/{id}`. */
  DetailPage?: ComponentType<{ id: string }>
  /** Further pages for one object, at `path/{id}/{name}`. */
  parts?: Record<string, ComponentType<{ id: string }>>
}

/** Every page in the order and groups of the navigation. `api/routes/pages.ts` serves them. */
export const routes: readonly PageRoute[] = [
  { path: '/home', group: 'Work', title: 'Home', permission: null, Page: HomePage },
  {
    path: '/incidents',
    group: 'Work',
    title: 'Incidents',
    permission: null,
    Page: IncidentsPage,
    DetailPage: IncidentPage,
    parts: { postmortem: PostmortemPage },
  },
  { path: '/shift', group: 'Work', title: 'Hand-over', permission: null, Page: ShiftPage },
  {
    path: '/approvals',
    group: 'Work',
    title: 'Approvals',
    permission: null,
    Page: ApprovalsPage,
    DetailPage: ApprovalPage,
  },
  {
    path: '/resources',
    group: 'Estate',
    title: 'Resources',
    permission: null,
    Page: ResourcesPage,
    DetailPage: ResourcePage,
  },
  { path: '/devices', group: 'Estate', within: '/resources', title: 'Devices', permission: null, Page: DevicesPage },
  { path: '/alerts', group: 'Estate', title: 'Alerts', permission: null, Page: AlertsPage },
  {
    path: '/knowledge',
    group: 'Know',
    title: 'Runbooks',
    permission: null,
    Page: KnowledgePage,
    DetailPage: RunbookPage,
  },
  { path: '/jobs', group: 'Know', title: 'Jobs', permission: null, Page: JobsPage, DetailPage: JobPage },
  {
    path: '/trust',
    group: 'Know',
    title: 'Trust',
    permission: null,
    Page: TrustPage,
    DetailPage: TrustPairPage,
  },
  { path: '/reports', group: 'Insight', title: 'Reports', permission: null, Page: ReportsPage },
  { path: '/usage', group: 'Insight', within: '/reports', title: 'Usage', permission: null, Page: UsagePage },
  { path: '/gaps', group: 'Insight', within: '/reports', title: 'Missing tools', permission: null, Page: GapsPage },
  { path: '/health', group: 'Settings', title: 'Health', permission: null, Page: HealthPage },
  { path: '/config', group: 'Settings', title: 'Configuration', permission: null, Page: ConfigPage },
  {
    path: '/people',
    group: 'Settings',
    title: 'Users',
    permission: 'manage_operators',
    advice: 'Ask an admin to change a person’s permissions.',
    Page: PeoplePage,
  },
  {
    path: '/tokens',
    group: 'Settings',
    title: 'Tokens',
    permission: 'manage_tokens',
    advice: 'Ask an admin for a token.',
    Page: TokensPage,
  },
  { path: '/audit', group: 'Settings', title: 'Audit', permission: 'audit', Page: AuditPage },
]

/**
 * Finds the route for an address, with the id after its path and the page for it. Null if there is
 * none.
 */
export function findRoute(
  pathname: string,
): { route: PageRoute; id: string; DetailPage: ComponentType<{ id: string }> | undefined } | null {
  const [, place = '', id = '', part = '', more] = pathname.split('/')
  const route = routes.find(({ path }) => path === `/${place || 'home'}`)
  if (!route || more) return null
  const DetailPage = part ? route.parts?.[part] : route.DetailPage
  return part && !DetailPage ? null : { route, id, DetailPage }
}
