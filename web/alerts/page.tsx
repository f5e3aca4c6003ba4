import { Heading } from '../heading.tsx'

export function AlertsPage() {
  return <Heading title="Alerts" />
}
