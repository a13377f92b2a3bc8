-- What the third version of the tables adds: promises of pay, withdrawal, reports that can be taken back, and links for one
-- person each.

ALTER TABLE annotator ADD COLUMN promised REAL;          -- pay of a whole session, as it was said on the consent page
ALTER TABLE annotator ADD COLUMN promised_votes INTEGER; -- the most items that a whole session has, without gold
ALTER TABLE annotator ADD COLUMN promised_gold INTEGER;
ALTER TABLE annotator ADD COLUMN withdrawn_at REAL;
ALTER TABLE annotator ADD COLUMN reported INTEGER NOT NULL DEFAULT 0;       -- items reported instead of judged, without gold
ALTER TABLE annotator ADD COLUMN gold_reported INTEGER NOT NULL DEFAULT 0;
ALTER TABLE annotator ADD COLUMN address TEXT;           -- keyed hashes of the first visit: who shares one is not who it is
ALTER TABLE annotator ADD COLUMN device TEXT;
ALTER TABLE item ADD COLUMN retired_by TEXT;             -- who set it aside
ALTER TABLE assignment ADD COLUMN dismissed INTEGER NOT NULL DEFAULT 0 CHECK (dismissed IN (0, 1));  -- a report without effect
ALTER TABLE payment ADD COLUMN cancelled_at REAL;        -- taken back before it was sent

CREATE INDEX annotator_device ON annotator (device);
CREATE INDEX assignment_problem ON assignment (item) WHERE state = 'problem';

CREATE TABLE salt (value TEXT NOT NULL) STRICT;          -- the key of those hashes

CREATE TABLE invitation (            -- codes of links for one person each; where there are any, nobody comes in without one
    code TEXT PRIMARY KEY,
    made_at REAL NOT NULL
) STRICT;

UPDATE annotator SET reported = (SELECT count(*) FROM assignment JOIN item ON item.id = assignment.item
    WHERE assignment.annotator = annotator.id AND assignment.state = 'problem' AND role = 'vote');
-- Before, the last decision about a person's pay stood alone, and what had been sent could be approved and sent again.
UPDATE payment SET cancelled_at = at WHERE sent_at IS NULL AND EXISTS (
    SELECT 1 FROM payment AS other WHERE other.annotator = payment.annotator AND other.id <> payment.id AND (
        other.id > payment.id
        OR (other.sent_at IS NOT NULL AND other.decision = 'approved' AND payment.decision = 'approved')));
UPDATE item SET retired_by = 'reports' WHERE retired_reason LIKE '%people reported a problem with it';
UPDATE schema_version SET version = 3;
