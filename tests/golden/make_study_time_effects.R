# Outcome models of small studies of veteran.csv, by coxph with tt() and offset(): study_time_effects.json.
# Rscript make_study_time_effects.R, in this folder.
source("json.R")
suppressMessages(library(survival))
exact<-coxph.control(eps=1e-12,iter.max=50)
v<-read.csv("veteran.csv")
v$drug<-v$trt; v$id<-seq_len(nrow(v))
v$score<-round(plogis(-1+0.02*v$karno),3)
v$w<-ifelse(v$drug==1,1/v$score,1/(1-v$score))
v$code<-ifelse(v$event==1 & v$id%%5==0,2,v$event)
v$entry<-ifelse(v$id%%3==0 & v$time>6,5,0)
logs<-function(x,t,...) x*log(t)
steps<-function(x,t,...) cbind(x*(t>60 & t<=150),x*(t>150))
at<-c(10,50,200)
smooth<-function(f,g) {
  b<-unname(coef(f)); V<-unname(f$var); n<-length(b); k<-cbind(1,g(at))
  V<-V[c(1,n),c(1,n)]; b<-b[c(1,n)]
  list(log_hr=as.vector(k%*%b),se=sqrt(diag(k%*%V%*%t(k))),statistic=b[2]^2/V[2,2])
}
stepped<-function(f) {
  b<-unname(coef(f)); V<-unname(f$var); k<-rbind(c(1,0,0),c(1,1,0),c(1,0,1)); g<-b[2:3]
  list(log_hr=as.vector(k%*%b),se=sqrt(diag(k%*%V%*%t(k))),statistic=as.vector(g%*%solve(V[2:3,2:3],g)))
}
one<-function(f) list(log_hr=unname(coef(f))[1],se=sqrt(f$var[1,1]),loglik=f$loglik)
out<-list(versions=list(R=R.version.string,survival=as.character(packageVersion("survival"))),at=at,
  score=v$score,code=v$code,entry=v$entry,
  plain=list(log=smooth(coxph(Surv(time,event)~drug+tt(drug),v,ties="breslow",tt=logs,control=exact),log),
    identity=smooth(coxph(Surv(time,event)~drug+tt(drug),v,ties="efron",tt=function(x,t,...) x*t,control=exact),identity),
    steps=stepped(coxph(Surv(time,event)~drug+tt(drug),v,ties="breslow",tt=steps,control=exact))),
  weighted=list(log=smooth(coxph(Surv(time,event)~drug+tt(drug),v,weights=w,cluster=id,ties="breslow",tt=logs,control=exact),log),
    steps=stepped(coxph(Surv(time,event)~drug+tt(drug),v,weights=w,cluster=id,ties="breslow",tt=steps,control=exact))),
  strata=smooth(coxph(Surv(time,event)~drug+tt(drug)+strata(stratum),v,ties="breslow",tt=logs,control=exact),log),
  late=smooth(coxph(Surv(entry,time,code==1)~drug+tt(drug),v,ties="breslow",tt=logs,control=exact),log),
  fixed=list(plain=one(coxph(Surv(time,event)~drug+offset(-0.03*karno+0.01*age),v,ties="breslow",control=exact)),
    weighted=one(coxph(Surv(time,event)~drug+offset(-0.03*karno+0.01*age),v,weights=w,cluster=id,ties="breslow",control=exact)),
    strata=one(coxph(Surv(time,event)~drug+offset(-0.03*karno+0.01*age)+strata(stratum),v,ties="breslow",control=exact)),
    log=smooth(coxph(Surv(time,event)~drug+offset(-0.03*karno+0.01*age)+tt(drug),v,ties="breslow",tt=logs,control=exact),log)))
writeLines(json(out),"study_time_effects.json")
