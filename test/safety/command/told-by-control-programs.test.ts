import { beforeAll, expect, test } from '@jest/globals'
import { type CommandContext, judgeCommand } from '../../../safety/command/judge.ts'
import { loadSql } from '../../../safety/sql/inspect.ts'

/**
 * What control programs and clouds tell about themselves, and right beside it what acts, never
 * ends, or shows what is secret.
 */

const context: CommandContext = { knownHosts: new Set(['db1']), knownNames: new Set(['web', 'web-0', 'backups']) }
const judged = (text: string) => judgeCommand(text, context)
const lines = (text: string): string[] =>
  text
    .trim()
    .split('\n')
    .map((line) => line.trim())

beforeAll(loadSql)

test.each(
  lines(`
    ceph daemon osd.0 config get osd_max_backfills
    ceph osd crush dump
    ceph fs subvolume ls cephfs
    ceph orch upgrade status
    rbd mirror image status vms/a
    cilium-dbg bpf tunnel list
    cilium config
    timeout 5 cilium monitor --type drop
    hubble observe --verdict DROPPED --to-namespace shop
    istioctl proxy-config log web-0
    istioctl x describe pod web-0
    linkerd diagnostics endpoints web.shop.svc.cluster.local:80
    flux get kustomization --no-header
    velero restore describe r1
    argocd app resources web
    timeout 5 consul monitor -log-level=debug
    consul operator usage instances
    nomad node pool list
    nomad operator metrics
    vault read sys/health
    vault read -format=json sys/replication/performance/status
    vault list auth/kubernetes/role
    vault kv list secret/shop
    helm repo list
    kubectl auth can-i list pods --as=system:serviceaccount:shop:web
    kubectl describe certificaterequest web-1
    kubectl get validatingwebhookconfigurations -o yaml
    oc adm upgrade
    storcli64 /c0/eall/sall show rebuild
    storcli64 /c0 show events
    parted -s /dev/sda unit s print free
    pvscan
    nvidia-smi topo -m
    nvidia-smi dmon -c 1
    birdcl show protocols all
    corosync-cmapctl runtime.members
    crm_node -l
    kafka-transactions.sh --bootstrap-server localhost:9092 list
    kafka-configs.sh --bootstrap-server localhost:9092 --describe --topic t
    kafka-consumer-groups.sh --bootstrap-server localhost:9092 --describe --group g --timeout 10000
    rabbitmq-diagnostics check_protocol_listener amqp
    nodetool tpstats -F json
    hdfs getconf -namenodes
    oc adm policy who-can get pods
    oc get catalogsource redhat-operators -n openshift-marketplace -o yaml
    kubectl top pod web-0 --containers=true
    docker node ls --format '{{.Hostname}} {{.Status}}'
    sacctmgr show assoc
    sreport cluster utilization
    dcgmi health -c
    pdnsutil list-zone example.com
    amtool config routes test severity=critical
    crictl --runtime-endpoint unix:///run/containerd/containerd.sock ps
    openssl x509 -in /etc/kubernetes/pki/apiserver.crt -noout -enddate
    find /etc/kubernetes/pki -name "*.crt" -exec openssl x509 -noout -enddate -in {} \\;
    pg_controldata /var/lib/postgresql/15/main
    psql -h /var/run/postgresql -c "select 1"
    aws lambda list-functions --query 'Functions[].[FunctionName,Runtime]'
    aws ecs describe-tasks --cluster c --tasks t --query 'tasks[].containers[].exitCode'
    aws cloudformation describe-stacks --query "Stacks[?StackStatus=='FAILED'].{N:StackName,S:StackStatus}"
    aws s3api list-objects-v2 --bucket backups --max-items 10
    openstack baremetal node list
    curl -s 'http://localhost:6060/debug/pprof/goroutine?debug=1'
    curl -s 'http://localhost:8983/solr/admin/cores?action=STATUS'`),
)('%s runs without approval', (text) => expect(judged(text).verdict).toBe('run'))

test.each(
  lines(`
    ceph daemon osd.0 config show
    ceph daemon osd.0 config set osd_max_backfills 1
    ceph daemon mgr.x config get mgr_rbd_secret_key
    ceph tell osd.0 bench
    ceph orch upgrade stop
    ceph fs subvolume rm cephfs a
    rbd mirror image promote vms/a
    cilium config Debug=true
    cilium endpoint config 1 Debug=true
    cilium bpf ct flush global
    hubble config set server x
    istioctl proxy-config log web-0 --level debug
    istioctl proxy-config bootstrap web-0
    istioctl proxy-config secret web-0 -o json
    istioctl tag set prod
    linkerd viz tap deploy/web
    flux export source git apps
    flux diff kustomization apps
    velero restore create r1
    argocd app get web --show-params
    argocd app manifests web
    consul keyring -list
    consul acl token list
    nomad job inspect shop
    nomad alloc status -json abc
    nomad node pool delete x
    vault read secret/shop
    vault read sys/raw/core
    vault list sys/leases/lookup
    vault list auth/token/accessors
    vault kv get secret/shop
    vault token lookup
    helm env
    helm repo add x https://x.example
    kubectl get pods --as=admin
    kubectl describe certificate web
    kubectl get virtualservice web -o yaml
    kubectl get secret web -o yaml
    oc adm upgrade --to-latest
    oc adm upgrade channel stable-4.15
    storcli64 /c0/e252/s3 start rebuild
    storcli64 /c0 set rebuildrate=30
    storcli64 /c0/v0 init
    parted -s /dev/sda resizepart 1 10GB
    parted -s /dev/sda name 1 x
    pvscan --cache
    nvidia-smi nvlink -r 0
    nvidia-smi -pm 1
    birdcl configure
    corosync-cmapctl
    corosync-cmapctl -s runtime.x u8 1
    crm_node -R web --force
    kafka-transactions.sh --bootstrap-server localhost:9092 abort --topic t
    kafka-features.sh --bootstrap-server localhost:9092 upgrade
    kafka-cluster.sh unregister --bootstrap-server localhost:9092 --id 1
    kafka-configs.sh --bootstrap-server localhost:9092 --describe --user bob
    kafka-configs.sh --bootstrap-server localhost:9092 --alter --topic t --add-config a=b
    rabbitmq-diagnostics environment
    rabbitmqctl list_global_parameters
    hdfs getconf -confKey fs.s3a.secret.key
    oc adm policy add-role-to-user admin bob
    oc whoami --show-token
    oc get mc worker -o yaml
    kubectl top pod web-0 --containers=false
    docker node ls --format '{{.TLSStatus}} {{json .}}'
    sacctmgr show configuration
    sacctmgr -i delete user bob
    sacctmgr show runawayjobs fix
    dcgmi health -s a
    dcgmi diag -r 1
    pdnsutil show-key x
    amtool config show
    crm_attribute -n x -v y
    sminfo 1 3
    ibnetdiscover /srv/x
    perfquery -R 1 1
    crictl --runtime-endpoint unix:///tmp/x.sock ps
    crictl -r unix:///tmp/x.sock exec web ps
    openssl x509 -in /etc/ssl/private/web.pem -noout -text
    openssl x509 -in /etc/ssl/web.key -noout -text
    openssl x509 -in pkcs11:token=x.pem -noout -text
    psql -h /tmp -c "select 1"
    aws lambda list-functions
    aws lambda list-functions --query 'Functions[]'
    aws lambda list-functions --query '*'
    aws lambda list-functions --query 'Functions[].*'
    aws lambda list-functions --query 'Functions[].Environment.Variables'
    aws lambda list-functions --query 'Functions[].{FunctionName:Environment}'
    aws lambda list-functions --query 'Functions[].[FunctionName, Environment]'
    aws lambda list-functions --query 'Functions[].to_string(@)'
    aws ecs describe-tasks --cluster c --tasks t --query 'tasks[].overrides'
    aws s3api list-objects-v2 --bucket backups
    curl -s 'http://localhost:6060/debug/pprof/cmdline'
    curl -s 'http://localhost:6060/debug/pprof/profile?seconds=60'
    curl -s 'http://localhost:6060/debug/pprof/heap?gc=1'
    curl -s 'http://localhost:8983/solr/admin/cores?action=UNLOAD&core=x'`),
)('%s asks', (text) => expect(judged(text)).toMatchObject({ verdict: 'ask', rewrite: null }))

test.each([
  ['hubble observe -f --verdict DROPPED', 'hubble observe --last 20 --verdict DROPPED'],
  ['nomad alloc logs -f abc', 'nomad alloc logs -tail -n 200 abc'],
  ['flux logs -f', 'flux logs'],
  ['flux get ks --watch', 'flux get ks'],
  ['parted /dev/sda print', 'parted -s /dev/sda print'],
  ['nvidia-smi dmon', 'nvidia-smi dmon -c 1'],
])('an endless command gets an end by code: %s', (text, rewrite) =>
  expect(judged(text)).toMatchObject({ verdict: 'ask', rewrite }),
)

test.each(['cilium monitor', 'consul monitor', 'nomad monitor'])('%s has no end and no form with one', (text) =>
  expect(judged(text)).toMatchObject({ verdict: 'ask', code: 'UNBOUNDED', rewrite: null }),
)
