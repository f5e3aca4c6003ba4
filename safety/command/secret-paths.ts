/**
 * Paths that are public although they match secret patterns: an authority's publications, an empty
 * device.
 */
export const publicPaths: readonly string[] = [
  '/dev/null',
  '/dev/stdin',
  '/etc/ssl/certs/**',
  '/etc/pki/ca-trust/**',
  '/usr/share/ca-certificates/**',
  '/usr/local/share/ca-certificates/**',
  '/usr/share/keyrings/**',
  '/etc/apt/keyrings/**',
  '/etc/apt/trusted.gpg.d/**',
  '/etc/ssl/cert.pem',
  '/etc/letsencrypt/live/*/fullchain.pem',
  '/etc/letsencrypt/live/*/chain.pem',
  '/var/log/**/private/**',
]

/** Paths that contact another machine: those of an automounter or a network file system. */
export const fetchingPaths: readonly string[] = [
  '/net/**',
  '/afs/**',
  '/smb/**',
  '/inet/**',
  '/inet4/**',
  '/inet6/**',
  '/dev/tcp/**',
  '/dev/udp/**',
]

/**
 * Directories that may be read with everything below: logs, and files that packages install for
 * everybody. Any other directory may hold a file that no list names.
 */
export const openTrees: readonly string[] =
  `/var/log/** /usr/share/** /usr/lib/** /usr/include/** /usr/src/** /lib/** /lib64/** /proc/sys/** /sys/class/** /sys/block/** /sys/fs/cgroup/**
   /etc/systemd/** /etc/cron.d/** /etc/cron.daily/** /etc/cron.hourly/** /etc/cron.weekly/** /etc/cron.monthly/** /etc/logrotate.d/**
   /etc/sysctl.d/** /etc/modprobe.d/** /etc/modules-load.d/** /etc/udev/** /etc/apt/sources.list.d/** /etc/apt/apt.conf.d/**
   /etc/apt/preferences.d/**  /etc/ld.so.conf.d/** /etc/security/limits.d/**
   /etc/tmpfiles.d/** /etc/nginx/conf.d/** /etc/nginx/sites-*/** /etc/nginx/snippets/** /etc/nginx/modules-*/** /etc/apache2/*-enabled/**
   /etc/apache2/*-available/** /etc/httpd/conf/** /etc/httpd/conf.d/** /etc/httpd/conf.modules.d/** /etc/haproxy/conf.d/** /etc/init.d/** /etc/bash_completion.d/**
   /etc/logcheck/** /etc/ssh/sshd_config.d/** /etc/ssh/ssh_config.d/** /run/systemd/generator*/** /boot/grub/** /boot/loader/**`.split(
    /\s+/,
  )

/** Homes, which hold keys and histories. */
export const homes: readonly string[] = ['/root', '/home', '/home/*']

/** Paths that can be read without an end. */
export const endlessPaths: readonly string[] = [
  '/dev/zero',
  '/dev/full',
  '/dev/random',
  '/dev/urandom',
  '/dev/hwrng',
  '/dev/tty*',
  '/dev/pts/**',
  '/dev/console',
  '/dev/kmsg',
  '/dev/ptmx',
  '/dev/input/**',
  '/proc/kmsg',
  '/sys/kernel/debug/tracing/**/trace_pipe',
  '/sys/kernel/tracing/**/trace_pipe',
]

/** Disks, partitions and volumes: a write to one destroys its contents. */
export const diskPaths: readonly string[] = [
  '/dev/[shv]d[a-z]*',
  '/dev/xvd[a-z]*',
  '/dev/nvme[0-9]*',
  '/dev/mmcblk[0-9]*',
  '/dev/md[0-9]*',
  '/dev/md/**',
  '/dev/dm-[0-9]*',
  '/dev/mapper/**',
  '/dev/disk/**',
  '/dev/loop[0-9]*',
  '/dev/drbd[0-9]*',
  '/dev/rbd[0-9]*',
  '/dev/nbd[0-9]*',
  '/dev/zd[0-9]*',
  '/dev/zvol/**',
  '/dev/bcache[0-9]*',
  '/dev/pmem[0-9]*',
  '/dev/disk[0-9]*',
  '/dev/rdisk[0-9]*',
  '/dev/mem',
  '/dev/kmem',
  '/dev/port',
]

/** Programs that report on a path (name, size, owner, facts of a device), never on its content. */
export const attributesOnly: ReadonlySet<string> = new Set(
  `ls dir vdir stat find du df tree test [ readlink realpath namei basename dirname cd pwd mountpoint findmnt mount lsblk blkid
   blockdev smartctl hdparm nvme fdisk sfdisk parted mdadm pvs vgs lvs pvdisplay vgdisplay lvdisplay pvscan vgscan lvscan
   swapon tune2fs dumpe2fs xfs_info btrfs udevadm fuser lsof getfacl lsattr dmsetup losetup cryptsetup multipath sg_inq quota
   lvmdiskscan zpool zfs xfs_quota e2label findfs which whereis type command locate plocate`.split(/\s+/),
)

/**
 * Paths whose content needs approval, by kind. The list consists of patterns over normalised paths,
 * in either case. An entry that ends in `/**` names the directory too. Copies of such files
 * (`.bak`, `~`, `.swp`, `.gz`) are also compared.
 */

const list = (text: string): string[] => text.trim().split(/\s+/)

/** Password hashes, and rules for changing the user. */
const accounts = list(`
  /etc/shadow* /etc/gshadow* **/shadow **/gshadow **/shadow- **/gshadow- /etc/sudoers /etc/sudoers.d/** /etc/security/opasswd
  /etc/master.passwd /etc/spwd.db /etc/tcb/** /var/backups/** **/.htpasswd **/htpasswd **/*.htpasswd **/.htdigest **/htdigest
  /root/anaconda-ks.cfg **/ks.cfg **/preseed.cfg **/autoinstall-user-data /etc/sssd/** /var/lib/sss/** /var/lib/AccountsService/**
  /etc/pam_ldap.conf /etc/pam_ldap.secret /etc/ldap.secret /etc/libnss-ldap.secret /etc/nslcd.conf /etc/nss-ldapd.conf
  /etc/ldap/slapd.d/** /etc/openldap/slapd.d/** **/slapd.conf /var/lib/ldap/** /etc/login_duo.conf /etc/duo/** **/.google_authenticator
  **/.totp /etc/google-auth/** /etc/users.oath /etc/yubico/** /var/lib/polkit-1/** /etc/doas.conf /etc/security/pam_env.conf
`)

/** Private keys and key stores, anywhere. */
const keys = list(`
  **/.ssh/** **/id_rsa* **/id_dsa* **/id_ecdsa* **/id_ed25519* **/id_xmss* **/*_rsa **/*_ed25519 **/*_ecdsa /etc/ssh/ssh_host_*_key
  /etc/dropbear/** **/*.pem **/*.key **/*.keys **/*.p12 **/*.p8 **/*.pfx **/*.pkcs12 **/*.jks **/*.jceks **/*.bks **/*.keystore
  **/*.truststore **/*.kdb **/*.kdbx **/*.agilekeychain/** **/*.opvault/** **/*.1pif **/*.ppk **/*.snk **/*.asc **/*.gpg **/*.pgp
  **/*.age **/age.txt **/key.txt **/keys.txt **/identity.txt **/*.keytab **/*.keyring **/keyring **/*.secret **/*.psk **/*.pgpass
  **/*.ovpn **/*.mobileconfig **/*.jwk **/*.jwks **/*.der.key **/privkey* **/private.key **/private_key* **/privatekey* **/*-key.pem
  **/server.key **/tls.key **/ca.key **/*_key.json **/*-key.json **/service-account*.json **/serviceaccount*.json **/gcp*.json
  /etc/ssl/private/** /usr/lib/ssl/** /etc/pki/tls/private/** /etc/pki/private/** /etc/pki/nssdb/** /etc/pki/rsyslog/** /etc/pki/consumer/**
  /etc/letsencrypt/archive/** /etc/letsencrypt/live/** /etc/letsencrypt/accounts/** /etc/letsencrypt/keys/** /etc/acme/**
  **/.acme.sh/** **/acme.json /etc/lego/** **/caddy/certificates/** **/caddy/acme/** /var/lib/caddy/** /etc/krb5.keytab
  /etc/krb5kdc/** /var/kerberos/** /var/lib/krb5kdc/** /tmp/krb5cc_* /tmp/krb5cc* /etc/luks/** /etc/cryptsetup-keys.d/**
  /etc/crypttab.d/** /boot/*.key /crypto_keyfile.bin **/*.luks **/luks-header* **/keyfile **/*.keyfile /etc/tpm2*/** /var/lib/sbctl/**
  /etc/secureboot/** **/.gnupg/** **/.pki/** **/.password-store/** **/.sops/** **/sops/age/** **/.step/** /etc/step-ca/** /etc/pki/CA/private/**
  **/easy-rsa/** **/pki/private/** /var/lib/dnssec/** /etc/bind/*.key /etc/bind/rndc.key /etc/rndc.key /etc/named/rndc.key
  **/k*+*+*.private /etc/opendkim/** /etc/dkimkeys/** /etc/exim4/dkim/** **/dkim/** /etc/tinc/** /etc/chrony/chrony.keys
  /etc/chrony.keys /etc/ntp/keys /etc/ntp.keys /etc/ntpsec/ntp.keys /etc/corosync/authkey /etc/pacemaker/authkey /etc/cluster/**
  /etc/ha.d/authkeys /etc/booth/** /etc/munge/** /etc/slurm/*.key /var/lib/tor/** /etc/tor/** **/.monkeysphere/**
`)

/** Networks: tunnels, wireless, dial-up, network directories. */
const networks = list(`
  /etc/wireguard/** **/wg*.conf /etc/openvpn/** /etc/ipsec.secrets /etc/ipsec.*.secrets /etc/ipsec.d/** /etc/swanctl/**
  /etc/strongswan/** /etc/strongswan.d/** /etc/racoon/** /etc/ppp/** /etc/xl2tpd/** /etc/pptpd* /etc/vpnc/** /etc/openconnect/**
  /etc/ocserv/** /etc/NetworkManager/system-connections/** /run/NetworkManager/system-connections/** /etc/netplan/** /run/netplan/**
  /etc/systemd/network/*.netdev /etc/wpa_supplicant/** **/wpa_supplicant*.conf /etc/hostapd/** **/hostapd*.conf /var/lib/iwd/**
  /etc/iwd/** /etc/network/interfaces.d/*secret* /etc/sysconfig/network-scripts/keys-* /etc/raddb/** /etc/freeradius/**
  /etc/tacacs*/** **/tac_plus.conf /etc/snmp/** /var/lib/snmp/** /var/lib/net-snmp/** **/snmpd.conf **/snmptrapd.conf **/snmp.conf
  /etc/iscsi/iscsid.conf /etc/iscsi/nodes/** /etc/iscsi/send_targets/** /etc/target/** /etc/tgt/** /etc/ietd.conf /etc/nvme/** /etc/zerotier*/** /var/lib/zerotier-one/** /var/lib/tailscale/**
  /etc/tailscale/** /etc/default/tailscaled /etc/headscale/** /var/lib/headscale/** /etc/nebula/** /etc/netbird/** /var/lib/netbird/**
  /etc/cloudflared/** **/.cloudflared/** /etc/frr/** /etc/quagga/** /etc/bird/** /etc/keepalived/** /etc/conntrackd/**
  /etc/vsftpd/** /etc/proftpd/** /etc/pure-ftpd/** /etc/ddclient.conf /etc/inadyn.conf /etc/freeipa/** /etc/ipa/** /etc/dhcp/*.key
  /etc/stunnel/** /etc/haproxy/certs/** /etc/haproxy/ssl/** /etc/squid/passwd /etc/squid/*passw* /etc/coturn/** **/turnserver.conf
  /etc/samba/private/** /var/lib/samba/private/** /var/lib/samba/** **/passdb.tdb **/secrets.tdb **/.smbcredentials **/.cifs*
  /etc/cifs* **/*.smbcred* /etc/fstab.d/*cred* /etc/davfs2/** **/.davfs2/** /etc/auto.*cred*
`)

/** Credentials of clients: clouds, registries, build tools, mail, databases. */
const clients = list(`
  /etc/drbd.conf /etc/drbd.d/** /etc/nut/upsd.users /etc/nut/upsmon.conf /etc/ups/** /etc/pgbackrest* /etc/pgbackrest/** /etc/nova/** /etc/neutron/** /etc/keystone/**
  /etc/cinder/** /etc/glance/** /etc/heat/** /etc/swift/** /etc/odoo/** **/odoo.conf /etc/zypp/credentials.d/** /etc/zypp/credentials.cat /srv/pillar/** /srv/salt/pillar/**
  /etc/ansible/** **/group_vars/** **/host_vars/** **/.credentials_* **/.databrickscfg /etc/samba/smbpasswd
  **/.aws/** **/.azure/** **/.config/gcloud/** **/.gcloud/** **/.boto /etc/boto.cfg /etc/**/*secret*/** /etc/sympa/cookie* /boot/**/user.cfg /etc/barman* /etc/barman.d/** /etc/default/keycloak* **/settings.py **/local_settings.py **/settings/*.py **/.config/gh/** **/.config/glab*/** **/.config/hub **/.config/doctl/**
  **/.config/hcloud/** **/.config/rclone/** **/rclone.conf **/.rclone.conf **/.oci/** **/.bluemix/** **/.aliyun/** **/.scw/**
  **/.config/scw/** **/.linode-cli **/.config/linode-cli **/.vultr-cli* **/.exoscale/** **/.config/exoscale/** **/.ovh.conf
  **/.config/openstack/** **/clouds.yaml **/clouds.yml **/secure.yaml **/*openrc* **/.heroku/** **/.fly/** **/.vercel/** **/.netlify/**
  **/.config/netlify/** **/.config/railway/** **/.config/pulumi/** **/.pulumi/** **/.terraform.d/** **/.terraformrc **/terraform.rc
  **/*.tfstate* **/*.tfvars* **/*.auto.tfvars* **/.terraform/** **/.tofu* **/.packer.d/** **/.vagrant.d/** **/.kube/** **/kubeconfig*
  **/*.kubeconfig **/*kubeconfig.y*ml **/.helm/** **/.config/helm/registry/** **/.docker/** **/.dockercfg **/.dockerconfigjson
  **/containers/auth.json **/.config/containers/** **/registries.conf.d/** **/.netrc **/_netrc **/.pgpass **/pgpass.conf
  **/.pg_service.conf **/.my.cnf **/.mylogin.cnf /etc/mysql/debian.cnf **/.mongorc.js **/.mongodb/** **/.dbshell **/.rediscli*
  **/.clickhouse-client/** **/.cassandra/** **/.cqlshrc **/cqlshrc **/.influxdbv2/** **/.snowsql/** **/.sqlcmdrc **/.odbc.ini
  **/odbc.ini **/tnsnames.ora **/.git-credentials **/.gitcookies **/git/credentials **/.npmrc **/npmrc **/.yarnrc* **/.pypirc
  **/pip.conf **/.pip/** **/.gem/credentials **/.bundle/config **/.config/composer/** **/.composer/auth.json **/auth.json
  **/nuget.config **/.nuget/** **/.cargo/credentials* **/.cargo/config* **/gradle.properties **/.gradle/** **/.m2/settings*.xml
  **/settings-security.xml **/.ivy2/** **/.sbt/** **/.mix/** **/.hex/** **/.config/configstore/** **/.s3cfg **/.mc/config.json **/.mc/**
  **/.passwd-s3fs /etc/passwd-s3fs **/.restic* **/restic*pass* /etc/restic/** **/.config/borg/** **/.borg* /etc/borgmatic*/**
  **/.config/borgmatic*/** **/.duplicity/** **/.duply/** **/.config/rustic/** /etc/kopia/** **/.config/kopia/** /etc/burp/**
  /etc/bareos/** /etc/bacula/** /etc/amanda/** **/.vault-token **/.vault **/.consul-token **/.nomad-token **/.ansible/**
  **/*vault*pass* **/.chef/** /etc/chef/** /etc/salt/pki/** /etc/puppetlabs/puppet/ssl/** **/eyaml/** **/.hub/** **/.lftp/**
  **/.lftprc **/.ncftp/** **/.wgetrc **/.curlrc **/.mutt/** **/.muttrc **/.msmtprc /etc/msmtprc **/.fetchmailrc /etc/fetchmailrc
  **/.getmail/** **/.offlineimaprc **/.mbsyncrc **/.isyncrc **/.imapfilter/** /etc/ssmtp/** /etc/nullmailer/** /etc/exim*/passwd*
  /etc/exim4/** **/sasl_passwd* **/sasldb2 /etc/postfix/sasl/** /etc/postfix/*pass* /etc/postfix/*.cf.d/** /etc/postfix/*sql*
  /etc/postfix/ldap* /etc/dovecot/private/** /etc/dovecot/*sql* /etc/dovecot/*ldap* /etc/dovecot/users /etc/dovecot/passwd* /etc/mail/auth/** /etc/mail/authinfo* **/.thunderbird/** **/.mozilla/** **/.config/google-chrome/**
  **/.config/chromium/** **/.config/bravesoftware/** **/.config/microsoft-edge/** **/.local/share/keyrings/** **/.kde/share/apps/kwallet/**
  **/.local/share/kwalletd/** **/kwalletd/** **/.config/op/** **/.config/bitwarden*/** **/.lastpass/** **/.config/keybase/**
  **/.config/slack/** **/.config/discord/** **/.purple/** **/.weechat/** **/.irssi/** **/.config/filezilla/** **/filezilla/**
  **/sitemanager.xml **/.remmina/** **/.vnc/** **/.config/tigervnc/** /etc/x11vnc* **/.xauthority **/.iceauthority **/.rhosts
  /etc/hosts.equiv **/.shosts **/.dbeaver*/** **/credentials-config.json **/.jupyter/** **/.kaggle/** **/.huggingface/**
  **/huggingface/token **/.config/openai* **/.anthropic* **/.claude/** **/.claude.json **/.codex/** **/.config/github-copilot/**
  **/.sentryclirc **/.gitlab-runner/** /etc/gitlab-runner/** **/.circleci/** **/.travis/** **/.jenkins/** **/.buildkite*/**
  **/.nightshift/** **/.nightshift-site/**
`)

/** Names that tell that the content is secret. */
const named = list(`
  **/.env **/.env.* **/.env-* **/.env_* **/*.env **/*.env.* **/.envrc **/.flaskenv **/env.sh /etc/environment
  /etc/environment.d/** **/environment.d/** **/credentials **/credentials.* **/.credentials **/.credentials.* **/*_credentials
  **/*-credentials **/*credentials.json **/*credentials.y*ml **/*credentials.xml **/*credentials.ini **/*.credentials **/creds **/creds.*
  **/.creds **/secret **/secrets **/secrets/** **/.secrets/** **/.secret **/.secrets **/secret.* **/secrets.* **/*-secret.* **/*_secret.*
  **/*-secrets.* **/*_secrets.* **/*secret.txt **/*secret.key **/secret_key* **/secretkey* **/secret-token* **/passwd.txt **/password
  **/passwords **/password.* **/passwords.* **/.password **/.passwords **/*password.txt **/*passwords.txt **/*-password **/*_password
  **/*.password **/*.passwd **/*.pass **/pass.txt **/passphrase* **/.pass **/token **/tokens **/token.* **/.token **/.tokens
  **/*.token **/*-token **/*_token **/*token.txt **/*token.json **/api_key* **/apikey* **/api-key* **/*.apikey **/.api_key
  **/authkey **/auth.conf /etc/apt/auth.conf.d/** **/.auth **/auth.ini **/authtoken* **/client_secret*.json **/oauth*.json
  **/.erlang.cookie **/*.cookie **/cookies.sqlite **/cookies.txt **/master.key **/wp-config*.php **/configuration.php
  **/settings.local.php **/local_settings.py **/local.settings.json **/appsettings*.json **/database.y*ml **/parameters.y*ml
  **/application-prod*.y*ml **/application-secret* **/bootstrap-secret* **/config.local.* **/.pgbouncer* **/userlist.txt
  **/standalone.xml **/tomcat-users.xml **/jmxremote.password **/jmxremote.access **/jetty-realm.properties **/realm.properties
  **/mgmt-users.properties **/application-users.properties **/kafka_*jaas* **/server.properties **/producer.properties **/consumer.properties **/connect-*.properties **/kraft/*.properties **/zookeeper.properties **/zoo.cfg.dynamic **/*jaas.conf **/*jaas*.conf **/shiro.ini
`)

/** Files with typed input, and files that programs leave behind. */
const traces = list(`
  **/.*_history **/.*history **/*_history **/.histfile **/.history **/.history/** **/.zsh_sessions/** **/.bash_sessions/**
  **/.local/share/fish/** **/.config/fish/fish_variables **/fish_history **/.lesshst **/.viminfo **/.local/share/nvim/** **/.local/state/nvim/**
  **/.vim/undo/** **/.emacs.d/auto-save-list/** **/.python_history **/.node_repl_history **/.sqlite_history **/.psql_history
  **/.mysql_history **/.rediscli_history **/.config/mongosh/** **/.mongodb/mongosh/** **/consolehost_history.txt
  **/.xsession-errors **/core.[0-9]* **/*.core **/*.dmp **/*.mdmp **/*.hprof **/*.heapdump
  **/heapdump* **/*.coredump /var/lib/systemd/coredump/** /var/spool/abrt/** /var/tmp/abrt/** /var/lib/apport/coredump/**
  **/vmcore* **/*.vmem **/*.vmss **/*.vmsn **/*.lime
`)

/** Memory, and links through which a path leads elsewhere than it seems. */
const kernel = list(`
  /proc/*/environ /proc/*/task/*/environ /proc/*/mem /proc/*/task/*/mem /proc/*/auxv /proc/*/root/**
  /proc/*/map_files/** /proc/*/task/*/root/** /proc/*/task/*/auxv /proc/kcore /proc/keys
  /proc/key-users /proc/vmcore /proc/kpage* /proc/*/pagemap /proc/*/syscall /proc/*/stack /proc/device-tree/chosen/rng-seed /dev/**
  /sys/kernel/debug/** /sys/kernel/security/** /sys/fs/pstore/** /sys/firmware/efi/efivars/** /sys/firmware/acpi/tables/**
  /sys/firmware/dmi/tables/** /sys/firmware/dmi/entries/** /sys/firmware/efi/vars/** /sys/firmware/qemu_fw_cfg/**
  /sys/class/firmware-attributes/**
`)

/** Data stores of whole systems. */
const stores = list(`
  /proc/*/cwd/** /proc/*/fd/** /proc/*/task/*/cwd/** /proc/*/task/*/fd/** /sys/kernel/config/target/** /sys/kernel/config/nvmet/**
  /sys/class/iscsi_session/** **/iscsi_session/** /sys/class/nvme*/*/*dhchap* **/*dhchap* **/tcp_fastopen_key **/stable_secret
  **/btmp **/btmp.* **/btmp-* **/sudo-io/** **/ttyin **/ttyout **/tlog/** **/cdebconf/*.dat **/ks-script-*
  /etc/kubernetes/** /var/lib/kubelet/** /var/lib/rancher/** /etc/rancher/** /var/lib/etcd/** /etc/etcd/** /var/lib/k0s/** /etc/k0s/**
  /var/snap/microk8s/** /var/lib/kube*/** /run/secrets/** /var/run/secrets/** /var/lib/docker/** /var/lib/containerd/** /var/lib/containers/**
  /run/containers/** /etc/docker/key.json /etc/docker/certs.d/** /etc/containers/auth.json /etc/containerd/config.toml /etc/crio/**
  /var/lib/machines/** /var/lib/lxc/** /var/lib/lxd/** /var/lib/incus/** /var/snap/lxd/** /etc/pve/priv/** /etc/pve/nodes/*/priv/** /etc/pve/*.key /etc/pve/qemu-server/** /etc/pve/nodes/*/qemu-server/** /etc/pve/user.cfg /var/lib/pve-cluster/**
  /etc/proxmox-backup/** /var/lib/pve-manager/** /etc/libvirt/qemu/** /etc/libvirt/secrets/** /etc/libvirt/storage/** /var/lib/libvirt/** /run/libvirt/** /etc/xen/** /etc/ceph/*keyring* /etc/ceph/*.secret /etc/ceph/iscsi-gateway.cfg /var/lib/ceph/**
  /etc/ganesha/** /var/lib/glusterd/** /etc/vault*/** /opt/vault/** /var/lib/vault/** /etc/consul*/** /opt/consul/** /var/lib/consul/**
  /etc/nomad*/** /opt/nomad/** /var/lib/nomad/** /etc/boundary*/** /etc/credstore*/** /run/credstore*/** /usr/lib/credstore*/**
  /run/credentials/** /var/lib/systemd/credential*/** /var/lib/systemd/random-seed /var/lib/**/secrets/** /var/lib/**/private/**
  /var/lib/mysql/** /var/lib/mariadb/** /var/lib/postgresql/*/*/global/** /var/lib/postgresql/*/*/base/** /var/lib/postgresql/*/*/pg_wal/**
  /var/lib/postgresql/*/*/pg_hba.conf /var/lib/pgsql/** /var/lib/postgresql/** /var/lib/mongodb/** /var/lib/mongo/** /var/lib/redis/**
  /var/lib/valkey/** /var/lib/rabbitmq/** /var/lib/cassandra/** /var/lib/clickhouse/** /var/lib/elasticsearch/** /var/lib/opensearch/**
  /var/lib/influxdb/** /var/lib/grafana/** /var/lib/prometheus/** /var/lib/neo4j/** /var/lib/couchdb/** /var/lib/memcached/**
  /etc/redis/** /etc/valkey/** **/redis*.conf **/users.acl **/sentinel*.conf /etc/mongod*.conf /etc/mongodb/** /etc/rabbitmq/**
  /etc/mysql/conf.d/*client* /etc/clickhouse-server/** /etc/elasticsearch/users* /etc/elasticsearch/certs/** /etc/opensearch/*security*/** /etc/kibana/** /etc/logstash/**
  /etc/cassandra/** /etc/neo4j/** /etc/couchdb/** /etc/influxdb/** /etc/pgbouncer/** /etc/pgpool*/** /etc/odyssey/** /etc/patroni/**
  **/patroni*.y*ml /etc/repmgr* /etc/postgresql/*/*/pg_hba.conf /etc/postgresql/*/*/pg_ident.conf /etc/proxysql* /etc/maxscale*
  /etc/maxscale.cnf.d/** /etc/keydb/** /etc/memcached/** /etc/grafana/** **/grafana.ini **/web-config.y*ml /etc/prometheus/web*.y*ml
  **/alertmanager*.y*ml /etc/alertmanager/** /etc/loki/** /etc/promtail/** /etc/telegraf/** /etc/collectd/** /etc/datadog-agent/**
  /etc/newrelic* /etc/newrelic-infra/** /etc/filebeat/** /etc/metricbeat/** /etc/fluent*/** /etc/td-agent/** /etc/vector/** /etc/otel*/**
  /etc/zabbix/*psk* /etc/zabbix/zabbix_server.conf /etc/zabbix/zabbix_proxy.conf /etc/zabbix/web/** /etc/icinga*/** /etc/nagios/private/** /etc/nagios/resource.cfg /etc/nagios*/*users* /etc/nrpe.d/** /etc/naemon/** /etc/sensu/** /etc/checkmk/** /omd/** /etc/munin/plugin-conf.d/**
  /etc/netdata/** /etc/monit/** /etc/monitrc **/.monitrc /etc/gitlab/** /var/opt/gitlab/** /etc/gitea/** /var/lib/gitea/** /etc/forgejo/**
  /var/lib/forgejo/** /var/lib/jenkins/** /etc/jenkins/** /etc/drone* /etc/woodpecker* /var/lib/teamcity/** /etc/teleport* /var/lib/teleport/**
  /etc/authentik/** /etc/keycloak/** /opt/keycloak/conf/** /etc/authelia/** /etc/dex/** /etc/oauth2-proxy* /etc/matrix-synapse/**
  /etc/nextcloud/** **/nextcloud/config/** /etc/phpmyadmin/** /etc/roundcube/** /etc/mailman*/** /etc/rspamd/local.d/worker-controller.inc /var/lib/rspamd/**
  /etc/asterisk/** /etc/freeswitch/** /etc/kamailio/** /etc/mosquitto/** /etc/home-assistant/** /etc/pihole/** /etc/unbound/*.key
  /etc/powerdns/** /etc/pdns/** /etc/knot/** /etc/nsd/** /etc/minio/** /etc/default/minio /etc/default/grafana-server
  /etc/default/gitlab* /etc/default/vault* /etc/default/consul* /etc/default/nomad* /etc/default/k3s* /etc/default/kubelet
  /etc/sysconfig/*secret* /etc/systemd/system/*.d/*secret*
  /var/spool/cron/** /var/spool/mail/** /var/mail/** /var/spool/postfix/** /var/spool/exim*/** /var/spool/cups/** /etc/cups/**
  /run/user/** /etc/cloud/** /var/lib/cloud/** /run/cloud-init/** /etc/waagent* /var/lib/waagent/**
  /var/lib/dhcp/*.key /var/lib/nfs/** /var/lib/bluetooth/** /var/lib/NetworkManager/** /var/lib/fwupd/** /var/lib/shim-signed/**
  /var/lib/dkms/*.key /var/lib/aide/** /var/lib/puppet/** /var/cache/debconf/** /var/lib/nightshift*/** /etc/nightshift*/**
  /opt/nightshift/** /run/nightshift/**
`)

/** Complete copies: archives, dumps, images. */
const copies = list(`
  **/*.tar **/*.tar.* **/*.tgz **/*.tbz* **/*.txz **/*.tzst **/*.zip **/*.7z **/*.rar **/*.jar **/*.war **/*.cpio **/*.cpio.* **/*.sql **/*.sql.*
  /var/crash/** **/*.dump **/*.dmp.gz **/*.bson **/*.rdb **/*.aof **/*.mdb **/*.img **/*.iso **/*.qcow2 **/*.vmdk **/*.vdi **/*.vhd* **/*.raw
  **/*.vma **/*.vma.* **/swapfile /swap.img **/*.pcap* **/*.cap **/*.pst **/*.mbox
`)

/** Paths whose name, size and time are also secret. */
export const hiddenPaths: readonly string[] = [
  ...new Set([...accounts, ...keys, ...networks, ...clients, ...named, ...traces, ...kernel]),
]

/** Paths that may be measured but not read: the size of a store shows none of its content. */
export const measuredPaths: readonly string[] = [...stores, ...copies]
